package sitefile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRoleDirectory(t *testing.T) {
	dir := siteDir(t, map[string]string{
		"site.toml": "site.name = \"x\"\n", "secret": "s", "roles/a/role.toml": "", "roles/a/real": "r",
		"roles/a/__pycache__/x.pyc": "", "roles/a/real~": "", "roles/a/.real.swp": "", "roles/none/x": "",
		"roles/.hidden/x": "", "roles/README": "",
	})
	huge, err := os.Create(filepath.Join(dir, "roles/a/huge"))
	if err != nil {
		t.Fatal(err)
	}
	if err := huge.Truncate(maxFile + 1); err != nil {
		t.Fatal(err)
	}
	huge.Close()
	for link, to := range map[string]string{"out": "../../../secret", "abs": "/etc/passwd", "nowhere": "gone",
		"ok": "real", "shared": "../../secret"} {
		if err := os.Symlink(to, filepath.Join(dir, "roles/a", link)); err != nil {
			t.Fatal(err)
		}
	}
	_, err = Load(dir)
	want := `roles/a/abs: it points outside the site directory (copy its target into the site directory)
roles/a/huge: it has more than 16 MiB (put data on a volume or in a package)
roles/a/nowhere: it points to a missing file (remove it, or create its target)
roles/a/out: it points outside the site directory (copy its target into the site directory)
roles/none: role.toml is missing in the role's directory (write one or remove the directory)`
	if err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
	for _, name := range []string{"out", "abs", "nowhere", "huge"} {
		os.Remove(filepath.Join(dir, "roles/a", name))
	}
	os.RemoveAll(filepath.Join(dir, "roles/none"))
	s, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Roles[0].Beside; string(got["ok"]) != "r" || string(got["shared"]) != "s" || len(got) != 3 ||
		len(s.Roles) != 1 {
		t.Errorf("%v", s.Roles)
	}
}

func TestImportStamp(t *testing.T) {
	const content = "site.name = \"x\"\nimage.a.import = \"images/root.tar.zst\"\nmirror.ca = \"certs/ca.pem\"\n"
	s := mustLoad(t, content)
	i := s.Images[0]
	if !filepath.IsAbs(i.Import) || !strings.HasPrefix(i.Stamp, "1-") || string(s.Mirror.CA) != "PEM" {
		t.Errorf("%+v", i)
	}
}
