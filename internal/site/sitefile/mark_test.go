package sitefile

import (
	"errors"
	"strings"
	"testing"

	"orrery/internal/problem"
)

// TestMark: files with a byte order mark, as some editors write them, are read. A file that is not
// UTF-8 is reported with file and line.
func TestMark(t *testing.T) {
	const mark = "\xef\xbb\xbf"
	files := map[string]string{
		"site.toml": mark +
			"[site]\nname = \"x\"\n[network.lan]\nsubnet = \"10.0.0.0/24\"\n[image.debian]\nsuite = \"bookworm\"\n[node.a]\nid = 1\nroles = [\"web\"]\nrequirements = \"r.txt\"\n",
		"roles/web/role.toml": mark + "apt = [\"curl\"]\nservices = [\"x.service\"]\n",
		"r.txt":               mark + "pyzmq==25.1.1\n",
	}
	s, err := Load(siteDir(t, files))
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "x" || s.Roles[0].Apt[0] != "curl" || s.Nodes[0].Requirements.Text != "pyzmq==25.1.1\n" {
		t.Errorf("%+v", s)
	}
	files["site.toml"] += "id = 2\n" // a mistake is reported at the right line
	files["roles/web/role.toml"] = "\xff\xfea\x00p\x00t\x00"
	_, err = Load(siteDir(t, files))
	var list problem.List
	if !errors.As(err, &list) || !strings.Contains(err.Error(), "site.toml:11: ") ||
		!strings.Contains(err.Error(), "roles/web/role.toml:1: this is not TOML: it is encoded as UTF-16; save it as UTF-8") {
		t.Errorf("%v", err)
	}
	made, err := ImportINI(strings.NewReader(mark+"[a]\nctid = x\n"), "hosts.ini", "")
	if err != nil || !strings.Contains(strings.Join(made.Lost, "\n"), "hosts.ini:2: [a] ctid") {
		t.Errorf("%v, %v", made, err)
	}
}
