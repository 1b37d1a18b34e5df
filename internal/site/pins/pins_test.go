package pins

import (
	"strings"
	"testing"
)

// TestLines: which lines pin a package, in the forms that people write.
func TestLines(t *testing.T) {
	for text, want := range map[string]string{
		"six==1.16.0":                      "six 1.16.0",
		"requests[socks]==2.31.0":          "requests 2.31.0 [socks]",
		"requests [socks, security]==2.31": "requests 2.31 [socks, security]",
		"examplepkg==1!1.0":                "examplepkg 1!1.0",
		"x==1.0rc1":                        "x 1.0rc1",
		"x==1.0.post1":                     "x 1.0.post1",
		"x==1.0.dev3":                      "x 1.0.dev3",
		"x==1.0+local.1":                   "x 1.0+local.1",
		"x==v1.0":                          "x v1.0",
		"x == 1.0 # why":                   "x 1.0",
		"x===whatever-it-is":               "x whatever-it-is",
		"x==1.0;python_version>'3'":        "x 1.0; python_version>'3'",
		"x==1.0 \\\n --hash=sha256:00":     "x 1.0 #",
		"six==1.16.0#c":                    "-",
		"x==1.*":                           "-",
		"x==1.0,==2.0":                     "-",
		"x==1.0==2.0":                      "-",
		"x>=1.0":                           "-",
		"x[a.b-c_d]==1":                    "x 1 [a.b-c_d]",
		"x[]==1":                           "x 1 []",
		"x[a b]==1":                        "- extras",
		"x[a,]==1":                         "- extras",
		"x[-a]==1":                         "- extras",
		"x==1;":                            "x 1",
		"x==1; os.name=='posix'":           "x 1; os.name=='posix'",
		"x==1; python_version>='3'#c":      "- a marker",
		"x==1; python_version>=3":          "- a marker",
		"x==1; pyton_version>='3'":         "- a marker",
		"x==1; sys_platform=='linux' and":  "- a marker",
		"x==1; sys_platform is 'linux'":    "- a marker",
		"x==1; not sys_platform=='linux'":  "- a marker",
		"x":                                "-",
		"x @ https://example.org/x.whl":    "-",
		"-r other.txt":                     "-",
		"==1.0":                            "-",
		"# nothing":                        "",
		"  \\\n":                           "",
	} {
		var got string
		for _, l := range Lines(text) {
			got = strings.TrimSpace("- " + l.Wrong)
			if p := l.Pin; p != nil {
				got = p.Name + " " + p.Version
				if p.Extras != "" {
					got += " " + p.Extras
				}
				if p.Marker != "" {
					got += "; " + p.Marker
				}
				if l.Hashed {
					got += " #"
				}
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	lines := Lines("# a\n\na==1 \\\n  --hash=sha256:00 \\\n  --hash=sha256:11\n\nb==2\n")
	if len(lines) != 2 || lines[0].Number != 3 || lines[1].Number != 7 ||
		lines[0].Hashes != "--hash=sha256:00    --hash=sha256:11" {
		t.Errorf("%+v", lines)
	}
}

// TestNever: Never is true only if the marker certainly excludes the package in every node.
func TestNever(t *testing.T) {
	for marker, want := range map[string]bool{
		"":                         false,
		`sys_platform == "win32"`:  true,
		`"win32" == sys_platform`:  true,
		`sys_platform == 'linux'`:  false,
		`sys_platform != "linux"`:  true,
		`os_name == "nt"`:          true,
		`platform_system=="Linux"`: false,
		`sys_platform == "win32" or python_version < "3"`:                       false,
		`sys_platform == "win32" and python_version < "3"`:                      true,
		`(sys_platform == "win32" or os_name == "nt") and python_version < "3"`: true,
		`sys_platform in "win32 cygwin"`:                                        true,
		`sys_platform not in "win32 cygwin"`:                                    false,
		`sys_platform not in "linux"`:                                           true,
		`platform_machine == "sparc"`:                                           false,
		`python_version >= "99"`:                                                false,
		`extra == "socks"`:                                                      true,
		`sys_platform == `:                                                      false,
		`sys_platform == "win32" and`:                                           false,
		`sys_platform == "win32" "x"`:                                           false,
		`(sys_platform == "win32"`:                                              false,
		`sys_platform == "win32`:                                                false,
		strings.Repeat("(", 100000) + `sys_platform == "win32"` + strings.Repeat(")", 100000): false,
	} {
		if got := (&Pin{Marker: marker}).Never(); got != want {
			t.Errorf("%.80q: %v, want %v", marker, got, want)
		}
	}
}

// TestAlways: Always is true only if the marker certainly includes the package in every node.
func TestAlways(t *testing.T) {
	for marker, want := range map[string]bool{
		"":                              true,
		`sys_platform == "linux"`:       true,
		`sys.platform == "linux"`:       true,
		`sys_platform == "win32"`:       false,
		`python_version > "2"`:          false,
		`sys_platform == "linux" and x`: false,
		`sys_platform == "linux" or python_version < "3"`: true,
	} {
		if got := (&Pin{Marker: marker}).Always(); got != want {
			t.Errorf("%q: %v, want %v", marker, got, want)
		}
	}
}

// TestNormal: names that an index considers equal.
func TestNormal(t *testing.T) {
	for name, want := range map[string]string{"typing_extensions": "typing-extensions",
		"Typing.Extensions": "typing-extensions", "a-_.b": "a-b"} {
		if got := Normal(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestPackage: names that a role may pass to pip.
func TestPackage(t *testing.T) {
	for text, want := range map[string]string{
		"requests": "requests", "requests[socks]": "requests", "a.b-c_d[x, y]": "a.b-c_d", "x[]": "x",
		"x[a b]": "", "x[a,]": "", "x==1": "", "-r": "", "x-": "", "[a]": "",
	} {
		got := ""
		if m := Package().FindStringSubmatch(text); m != nil {
			got = m[1]
		}
		if got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}
