package pkgmirror

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"time"

	"orrery/internal/site"

	"golang.org/x/sys/unix"
)

func TestFileOf(t *testing.T) {
	for file, want := range map[string]Package{
		"six-1.16.0-py2.py3-none-any.whl":                     {"six", "1.16.0"},
		"typing_extensions-4.16.0-py3-none-any.whl":           {"typing-extensions", "4.16.0"},
		"numpy-2.0.0-1-cp311-cp311-manylinux_2_17_x86_64.whl": {"numpy", "2.0.0"},
		"docopt-0.6.2.tar.gz":                                 {"docopt", "0.6.2"},
		"ruamel.yaml-0.18.zip":                                {"ruamel-yaml", "0.18"},
		"index.html":                                          {},
		"broken.whl":                                          {},
	} {
		got, ok := packageOfFile(file)
		if got != want || ok != (want.Name != "") {
			t.Errorf("%s: %v, %t", file, got, ok)
		}
	}
	if !sameVersion("1.0+local.1", "1.0_local.1") || sameVersion("1.0", "1.0.1") {
		t.Error("versions are not compared as they are written in names of files")
	}
}

func TestFits(t *testing.T) {
	for _, test := range []struct {
		file string
		want bool
	}{
		{"six-1.16.0-py2.py3-none-any.whl", true},
		{"docopt-0.6.2.tar.gz", true},
		{"a-1-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.whl", true},
		{"a-1-cp313-cp313-manylinux2014_x86_64.whl", false},
		{"a-1-cp39-abi3-manylinux_2_28_x86_64.whl", true},
		{"a-1-cp39-cp39-manylinux_2_28_x86_64.whl", false},
		{"a-1-cp312-abi3-manylinux_2_28_x86_64.whl", false},
		{"a-1-cp311-cp311-manylinux2014_aarch64.whl", false},
		{"a-1-py2-none-any.whl", false},
	} {
		if isInstallable(test.file, "3.11", "x86_64") != test.want {
			t.Errorf("%s: %t", test.file, !test.want)
		}
	}
}

func TestPoolPath(t *testing.T) {
	for _, test := range [][4]string{
		{"bash", "5.2.15-2+b13", "amd64", "pool/s/b/bash/bash_5.2.15-2+b13_amd64.deb"},
		{"libc6", "2.36-9", "amd64", "pool/s/libc/libc6/libc6_2.36-9_amd64.deb"},
		{"bsdutils", "1:2.38.1-5", "amd64", "pool/s/b/bsdutils/bsdutils_2.38.1-5_amd64.deb"},
		{"lib", "1", "all", "pool/s/l/lib/lib_1_all.deb"},
	} {
		if got := poolPath("s", test[0], test[1], test[2]); got != test[3] {
			t.Errorf("%s: %s", test[0], got)
		}
	}
	if got := cacheName("bsdutils", "1:2.38.1-5", "amd64"); got != "bsdutils_1%3a2.38.1-5_amd64.deb" {
		t.Error(got)
	}
}

const index = `Package: bash
Status: install ok installed
Architecture: amd64
Version: 5.2-1

Package: bash
Architecture: amd64
Version: 5.2-2
Priority: required
Section: shells
Filename: pool/main/b/bash/bash_5.2-2_amd64.deb
SHA256: 82
Description: a shell
 Filename: none
Tag: a, b,
 c

Package: bash
Architecture: arm64
Version: 5.2-3
Filename: pool/main/b/bash/bash_5.2-3_arm64.deb

Package: tzdata
Architecture: all
Version: 2024a
Filename: pool/main/t/tzdata/tzdata_2024a_all.deb
`

func TestOffers(t *testing.T) {
	all := parseOffers(index, "amd64")
	if len(all) != 2 || all[Package{"bash", "5.2-2"}]["priority"] != "required" ||
		all[Package{"bash", "5.2-2"}]["filename"] != "pool/main/b/bash/bash_5.2-2_amd64.deb" {
		t.Errorf("got %v", all)
	}
	if _, ok := all[Package{"tzdata", "2024a"}]; !ok {
		t.Error("what is for all architectures is missing")
	}
}

// TestRemaining: only packages in the index are pruned, and the rest of the index is unchanged.
func TestRemaining(t *testing.T) {
	d := &debs{archive: "/m/apt", keep: map[string]bool{"pool/main/t/tzdata/tzdata_2024a_all.deb": true}}
	got := d.remaining(index[strings.Index(index, "Package: bash\nArchitecture"):])
	if !strings.HasPrefix(got, "Package: tzdata\n") || strings.Contains(got, "bash") ||
		!strings.HasSuffix(got, ".deb\n\n") {
		t.Errorf("got %q", got)
	}
	want := []string{"/m/apt/pool/main/b/bash/bash_5.2-2_amd64.deb", "/m/apt/pool/main/b/bash/bash_5.2-3_arm64.deb"}
	if !slices.Equal(d.doomed, want) {
		t.Errorf("doomed %v", d.doomed)
	}
}

func layers() (base, tool *Layer) {
	base = &Layer{Digest: "b", Title: "debian", Suite: "bookworm", Debian: []string{"bash=5.2-2", "bsdutils=1:2.38"}}
	tool = &Layer{
		Digest: "t", Title: "debian + tool", Base: base, Suite: "bookworm", Runs: "3.11",
		Debian: []string{"bash=5.2-2", "bsdutils=1:2.38", "tree=2.1.0-1", "python3-pip-whl=23.0.1+dfsg-1",
			"python3-setuptools-whl=66.1.1-1"},
		Python: []string{"pip==23.0.1", "setuptools==70.0", "typing_extensions==4.16.0"},
	}
	return base, tool
}

// TestNeeds: each layer needs what it adds, once, bases first. What python3-venv installs is in no
// index.
func TestNeeds(t *testing.T) {
	base, tool := layers()
	all := needs([]*Layer{tool, tool, base})
	if len(all) != 2 || all[0].layer != base || all[1].layer != tool {
		t.Fatalf("got %+v", all)
	}
	if want := []Package{{"bash", "5.2-2"}, {"bsdutils", "1:2.38"}}; !slices.Equal(all[0].debian, want) {
		t.Errorf("base: %v", all[0].debian)
	}
	if want := []Package{{"tree", "2.1.0-1"}, {"python3-pip-whl", "23.0.1+dfsg-1"},
		{"python3-setuptools-whl", "66.1.1-1"}}; !slices.Equal(all[1].debian, want) {
		t.Errorf("layer: %v", all[1].debian)
	}
	// pip is Debian's; setuptools differs from Debian's, so it was installed from the index.
	if want := []Package{{"setuptools", "70.0"}, {"typing-extensions", "4.16.0"}}; !slices.Equal(all[1].python, want) {
		t.Errorf("Python: %v", all[1].python)
	}
	if debian, python := countDistinct(append(all, all...)); debian != 5 || python != 2 {
		t.Errorf("counted %d and %d", debian, python)
	}
}

func TestSuites(t *testing.T) {
	base, tool := layers()
	other := &Layer{Digest: "o", Suite: "bookworm", Components: []string{"contrib"}}
	if got := suites([]*Layer{base, tool, other, {Suite: "trixie"}}); !reflect.DeepEqual(got,
		map[string][]string{"bookworm": {"contrib", "main"}, "trixie": {"main"}}) {
		t.Errorf("got %v", got)
	}
}

func TestPinned(t *testing.T) {
	const pins = "Typing_Extensions==4.16.0 \\\n--hash=sha256:aa \\\n--hash=sha256:bb\nsix==1.16.0 --hash=sha256:cc\nfoo[bar]==1\n"
	lines, hashed := pinnedRequirements(pins, []Package{{"typing-extensions", "4.16.0"}, {"foo", "1"}})
	if want := []string{"Typing_Extensions==4.16.0 --hash=sha256:aa --hash=sha256:bb",
		"foo[bar]==1"}; !slices.Equal(lines, want) || !hashed {
		t.Errorf("got %q, %t", lines, hashed)
	}
	if lines, hashed := pinnedRequirements("six==1.16.0\n", []Package{{"six", "1.16.0"}}); len(lines) != 1 || hashed {
		t.Errorf("got %q, %t", lines, hashed)
	}
}

// TestLinks: the written page can be parsed again.
func TestLinks(t *testing.T) {
	digests := map[string]string{"a-1+b.c-py3-none-any.whl": strings.Repeat("0a", 32),
		"a-2.tar.gz": strings.Repeat("1b", 32)}
	text := string(pageOf("a", []string{"a-1+b.c-py3-none-any.whl", "a-2.tar.gz"}, digests))
	if got := links(text); !reflect.DeepEqual(got, digests) {
		t.Errorf("got %v of\n%s", got, text)
	}
	if root := string(pageOf("all", []string{"a/"}, nil)); !strings.Contains(root, `<a href="a/">a</a>`) {
		t.Error(root)
	}
}

func TestUpstream(t *testing.T) {
	m := site.Mirror{Apt: "file:///srv/m/apt", Security: "http://s/", PyPI: "file:///srv/m/pypi/simple",
		Proxy: "http://p", Key: []byte("k")}
	if got, want := Upstream(m, "/srv/m"),
		(site.Mirror{Security: "http://s/", Proxy: "http://p"}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if got := Upstream(m, "/srv/other"); !reflect.DeepEqual(got, m) {
		t.Errorf("got %+v", got)
	}
}

// TestWheels: existing files are found, damaged ones are dropped, and the pages list the rest.
func TestWheels(t *testing.T) {
	m := &Mirror{Dir: t.TempDir(), Log: io.Discard, Progress: func(string) {}}
	incoming := filepath.Join(m.incoming(), "wheels")
	if err := os.MkdirAll(incoming, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"six-1.16.0-py2.py3-none-any.whl", "six-1.17.0-py2.py3-none-any.whl",
		"docopt-0.6.2.tar.gz"} {
		if err := os.WriteFile(filepath.Join(incoming, file), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w, err := readWheels(m.simple())
	if err != nil {
		t.Fatal(err)
	}
	var done Result
	if err := (&run{Mirror: m, wheels: w, done: &done}).placeWheels(); err != nil || done.Fetched != 3 {
		t.Fatal(done, err)
	}
	if err := w.publish(); err != nil {
		t.Fatal(err)
	}
	if w, err = readWheels(m.simple()); err != nil {
		t.Fatal(err)
	}
	lacks := func(packages ...Package) []Package {
		t.Helper()
		lacks, err := w.missing("3.11", packages)
		if err != nil {
			t.Fatal(err)
		}
		return lacks
	}
	if got := lacks(Package{"six", "1.16.0"}, Package{"docopt", "0.6.2"}, Package{"six", "1.15.0"}); !slices.Equal(got,
		[]Package{{"six", "1.15.0"}}) {
		t.Errorf("lacks %v", got)
	}
	if err := os.WriteFile(filepath.Join(m.simple(), "six", "six-1.16.0-py2.py3-none-any.whl"), []byte("damaged"),
		0o600); err != nil {
		t.Fatal(err)
	}
	if got := lacks(Package{"six", "1.16.0"}); len(got) != 1 {
		t.Errorf("lacks %v", got)
	}
	w.prune([]*Layer{{Digest: "x", Python: []string{"six==1.17.0"}}}, nil)
	if err := w.publish(); err != nil {
		t.Fatal(err)
	}
	if n, err := removeDoomed(w.doomed); err != nil || n == 0 {
		t.Error(n, err)
	}
	left, _ := filepath.Glob(m.simple() + "/*/*.[wt]*")
	if _, err := os.Stat(filepath.Join(m.simple(), "docopt")); err == nil || len(left) != 2 {
		// the damaged file is in no index
		t.Errorf("left are %v", left)
	}
	root, err := os.ReadFile(filepath.Join(m.simple(), "index.html"))
	if err != nil || strings.Contains(string(root), "docopt") || !strings.Contains(string(root), "six") {
		t.Errorf("%s %v", root, err)
	}
}

// TestHold: two processes cannot write at the same time.
func TestHold(t *testing.T) {
	m := &Mirror{Dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(m.Dir, tmpPrefix+"1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(m.apt(), unpublishedPrefix+"1", "bookworm"), 0o755); err != nil {
		t.Fatal(err)
	}
	release, err := m.lockDir(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{filepath.Join(m.Dir, tmpPrefix+"*"), filepath.Join(m.apt(), unpublishedPrefix+"*")} {
		if left, _ := filepath.Glob(pattern); len(left) > 0 {
			t.Errorf("left are %v", left)
		}
	}
	if _, err := m.lockDir(context.Background()); err == nil {
		t.Error("held twice")
	}
	release()
	if release, err = m.lockDir(context.Background()); err != nil {
		t.Error(err)
	} else {
		release()
	}
}

// TestIncomingOfStrangers: programs of packages run in the directory for downloads. Links that they
// leave in place of files are not followed.
//
// Promise (Files of strangers): From what a package leaves where a mirror is pulled to, only
// regular files are taken.
func TestIncomingOfStrangers(t *testing.T) {
	outside := t.TempDir()
	mine, wheel := filepath.Join(outside, "mine"), "six-1.16.0-py2.py3-none-any.whl"
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(mine, []byte("of the host"), 0o600))
	must(os.WriteFile(filepath.Join(outside, wheel), []byte("of the host"), 0o600))
	for name, spoil := range map[string]func(incoming string){
		"a link":  func(in string) { must(os.Symlink(mine, filepath.Join(in, "wheels", wheel))) },
		"a pipe":  func(in string) { must(unix.Mkfifo(filepath.Join(in, "wheels", wheel), 0o600)) },
		"endless": func(in string) { must(os.Symlink("/dev/zero", filepath.Join(in, "wheels", wheel))) },
		"another directory": func(in string) {
			must(os.Remove(filepath.Join(in, "wheels")))
			must(os.Symlink(outside, filepath.Join(in, "wheels")))
		},
		"a link for the list": func(in string) { must(os.Symlink(mine, filepath.Join(in, wantedName))) },
	} {
		t.Run(name, func(t *testing.T) {
			m := &Mirror{Dir: t.TempDir(), Log: io.Discard, Progress: func(string) {}}
			must(os.MkdirAll(filepath.Join(m.incoming(), "wheels"), 0o755))
			spoil(m.incoming())
			w, err := readWheels(m.simple())
			must(err)
			done := make(chan struct{})
			go func() {
				defer close(done)
				var pulled Result
				_ = m.writeWanted([]byte("six==1.16.0\n"))
				if _ = (&run{Mirror: m, wheels: w, done: &pulled}).placeWheels(); pulled.Fetched > 0 {
					t.Errorf("%d were taken", pulled.Fetched)
				}
			}()
			select {
			case <-done:
			case <-time.After(20 * time.Second):
				t.Fatal("it waits")
			}
			if found, _ := filepath.Glob(m.simple() + "/*/*"); len(found) > 0 {
				t.Errorf("in the mirror are %v", found)
			}
			if text, _ := os.ReadFile(mine); string(text) != "of the host" {
				t.Errorf("it holds %q", text)
			}
			if names, _ := os.ReadDir(outside); len(names) != 2 {
				t.Errorf("outside there are %v", names)
			}
		})
	}
}

// TestNamesOfPackages: names of packages become paths and arguments only if they are valid.
func TestNamesOfPackages(t *testing.T) {
	for _, l := range []*Layer{
		{Debian: []string{"../../../etc/x=1"}}, {Debian: []string{"-o=Dir::Etc=1"}}, {Debian: []string{"bash=../1"}},
		{Debian: []string{"=1"}},
		{Python: []string{"../x==1"}}, {Python: []string{"six==1/../.."}}, {Python: []string{"--index-url==1"}},
		{Python: []string{"==1"}},
	} {
		l.Digest = "x"
		if validateNeeds(needs([]*Layer{l})) == nil {
			t.Errorf("%q and %q are taken", l.Debian, l.Python)
		}
	}
	good := &Layer{Digest: "x", Debian: []string{"libstdc++6=1:12.2.0-14+deb12u1~x", "g++=4:12.2.0-3"},
		Python: []string{"typing_extensions==4.9.0", "A.b==1!2.0+local"}}
	if err := validateNeeds(needs([]*Layer{good})); err != nil {
		t.Error(err)
	}
	if all := links(`<a href="..%2F..%2Fmine#sha256=` + strings.Repeat("0", 64) + `">x</a>`); len(all) > 0 {
		t.Errorf("links: %v", all)
	}
}

// TestAgentEnds: a gpg agent that ends while gpg uses it does not make a pull fail.
func TestAgentEnds(t *testing.T) {
	dir := t.TempDir()
	for name, script := range map[string]string{
		"gpg": `cd ` + dir + `
if [ ! -e first ]; then : >first; echo "gpg: can't connect to the agent: End of file" >&2; exit 2; fi
if [ ! -e second ]; then : >second; echo "gpg: signing failed: Broken pipe" >&2; exit 2; fi`,
		"gpgconf": "exit 0",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	if err := keyring(t.TempDir()).gpg(t.Context(), "--clear-sign", "Release"); err != nil {
		t.Error(err)
	}
}
