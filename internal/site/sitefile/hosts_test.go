package sitefile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/problem"
	"orrery/internal/site/sitefile"
)

const restOfSite = `
# the rest
[image.debian]
suite = "bookworm"   # old
[node.a]
id = 1
vars = { text = """
[host.sv9]
address = "no host at all"
[other]
""" }
`

func written(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "site.toml"), []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	return dir
}

func textOf(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "site.toml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestEditHosts: a host can be added to a site file and removed again, and all other text stays
// unchanged, byte for byte.
func TestEditHosts(t *testing.T) {
	rest := strings.ReplaceAll(restOfSite, "[host.sv9]\naddress = \"no host at all\"\n[other]\n", "text\n")
	const head = "\ufeffsite.name = \"x\"\n"
	for what, c := range map[string]struct{ was, added string }{
		"behind the others": {
			head + "[host.sv1] # this one\naddress = \"local\"\n\tcpus = 4\n\n# remark\n\n# of the rest\n" + rest,
			head + "[host.sv1] # this one\naddress = \"local\"\n\tcpus = 4\n\n[host.sv2]\naddress = \"root@10.8.1.2\"\n\n# remark\n\n# of the rest\n" + rest,
		},
		"at the end": {"site.name = \"x\"\nhost.sv1.address = \"10.8.1.1\"\n" + rest,
			"site.name = \"x\"\nhost.sv1.address = \"10.8.1.1\"\n" + rest + "\n[host.sv2]\naddress = \"root@10.8.1.2\"\n"},
		"without a word": {head + rest,
			head + rest + "\n[host.local]\naddress = \"local\"\n\n[host.sv2]\naddress = \"root@10.8.1.2\"\n"},
		"without newline": {head + rest + "[host.\"sv1\"]",
			head + rest + "[host.\"sv1\"]\n\n[host.sv2]\naddress = \"root@10.8.1.2\"\n"},
		"with CRLF": {strings.ReplaceAll(head+"[host.sv1]\n\n"+rest, "\n", "\r\n"),
			strings.ReplaceAll(head+"[host.sv1]\n\n[host.sv2]\naddress = \"root@10.8.1.2\"\n\n"+rest, "\n", "\r\n")},
		"blank lines most": {head + "\n\n[host.sv1]\n\n\n" + rest,
			head + "\n\n[host.sv1]\n\n[host.sv2]\naddress = \"root@10.8.1.2\"\n\n\n" + rest},
	} {
		t.Run(what, func(t *testing.T) {
			dir := written(t, c.was)
			e, err := sitefile.AddHost(dir, "sv2", "root@10.8.1.2")
			if err != nil {
				t.Fatal(err)
			}
			if textOf(t, dir) != c.was {
				t.Error("the file was changed before it was to be")
			}
			if err := e.Write(); err != nil {
				t.Fatal(err)
			}
			if got := textOf(t, dir); got != c.added {
				t.Errorf("got\n%q\nwant\n%q", got, c.added)
			}
			if st, err := os.Stat(filepath.Join(dir, "site.toml")); err != nil || st.Mode() != 0o640 {
				t.Errorf("its mode is %v (%v)", st.Mode(), err)
			}
			if h, ok := e.Site.Host("sv2"); !ok || h.Address != "root@10.8.1.2" || len(e.Site.Hosts) != 2 {
				t.Errorf("the hosts are %v", e.Site.Hosts)
			}
			e, err = sitefile.RemoveHost(dir, "sv2")
			if err != nil || e.Write() != nil {
				t.Fatalf("it cannot be taken out again: %v", err)
			}
			want := strings.TrimRight(c.was, "\r\n")
			if what == "without a word" {
				want += "\n\n[host.local]\naddress = \"local\""
			}
			if got := strings.TrimRight(textOf(t, dir), "\r\n"); got != want {
				t.Errorf("taken out again, it is\n%q\nnot\n%q", got, want)
			}
			if entries, _ := os.ReadDir(dir); len(entries) != 1 {
				t.Errorf("left is %v", entries)
			}
		})
	}
}

// TestEditHostsNot: a file that cannot be changed automatically stays unchanged, and the user can
// insert the block by hand.
func TestEditHostsNot(t *testing.T) {
	for what, text := range map[string]string{
		"a table in one line": "site.name = \"x\"\n[host]\nsv1 = { address = \"local\" }\nsv2 = { address = \"10.8.1.2\" }\n[image.debian]\nsuite = \"bookworm\"\n",
		"a text that looks like a host": "site.name = \"x\"\n[host.sv1]\n[host.sv2]\naddress = \"10.8.1.2\"\n" +
			strings.ReplaceAll(restOfSite, "sv9", "sv2"),
	} {
		dir := written(t, text)
		e, err := sitefile.RemoveHost(dir, "sv2")
		if err == nil {
			err = e.Write()
		}
		if err == nil || textOf(t, dir) != text {
			t.Errorf("%s: %v\n%s", what, err, textOf(t, dir))
		}
	}
	dir := written(t, "site.name = \"x\"\n[host.sv1]\n"+restOfSite)
	e, err := sitefile.AddHost(dir, "sv2", "root@10.8.1.2")
	if err != nil || e.Block != "[host.sv2]\naddress = \"root@10.8.1.2\"\n" {
		t.Fatalf("%v", err)
	}
	if err := e.Write(); problem.ExitCode(err) != int(problem.Unable) || !strings.Contains(err.Error(), "site.toml") {
		t.Errorf("behind a text that looks like a host: %v", err)
	}
	plain := "site.name = \"x\"\n[host.sv1]\n"
	dir = written(t, plain)
	if e, err = sitefile.AddHost(dir, "sv2", "root@10.8.1.2"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "site.toml"), []byte(plain+"# new\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := e.Write(); problem.ExitCode(err) != int(problem.Surprise) {
		t.Errorf("of a file that has changed: %v", err)
	}
	if err := os.Rename(filepath.Join(dir, "site.toml"), filepath.Join(dir, "other.toml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("other.toml", filepath.Join(dir, "site.toml")); err != nil {
		t.Fatal(err)
	}
	if e, err = sitefile.AddHost(dir, "sv2", "root@10.8.1.2"); err != nil {
		t.Fatal(err)
	}
	if err := e.Write(); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("of a link: %v", err)
	}
	for name, address := range map[string]string{"sv1": "10.8.1.2", "SV 2": "10.8.1.2", "sv2": "-oProxyCommand=x",
		"sv3": "local"} {
		if _, err := sitefile.AddHost(dir, name, address); err == nil {
			t.Errorf("host %s at %s is added", name, address)
		}
	}
}
