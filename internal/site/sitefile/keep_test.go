package sitefile

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestKeep: a copy has all files that the site uses, including hidden and linked ones, and no
// others. It shares nothing with the original and has the same site.
func TestKeep(t *testing.T) {
	dir := siteDir(t, map[string]string{
		"site.toml": `site.name = "x"
image.debian.suite = "bookworm"
image.root.import = "images/root.tar"
image.oci.import = "images/oci"
image.far.import = "../far.tar"
mirror.ca = ".certs/ca.pem"
secret.near.file = "../near"
defaults.requirements = "pins/.all.txt"
node.one = { id = 1, image = "debian", roles = ["linked"] }
`,
		".certs/ca.pem": "PEM", "shared/pins/.all.txt": "a==1\n",
		"shared/role/role.toml": "file = [{ path = \"/x\", source = \".hidden\" }]\n",
		"shared/role/.hidden":   "h", "shared/role/sub/file": "f", "images/root.tar": strings.Repeat("x", 5<<20),
		"images/oci/index.json":     "{}",
		"images/oci/blobs/sha256/0": "blob", ".git/config": "g", "notes": "n", ".env": "PASSWORD=hunter2",
		"roles/plain/role.toml": "", "roles/plain/left~": "",
		"../far.tar": "far", "../key": "a key of the host",
	})
	for link, to := range map[string]string{"pins": "shared/pins", "roles/linked": "../shared/role",
		"notes.link": "../key"} {
		must(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	to := filepath.Join(t.TempDir(), "copy")
	kept, err := Copy(dir, to)
	must(t, err)
	original, err := Load(dir)
	must(t, err)
	copied, err := LoadCopy(to, dir)
	must(t, err)
	if from := copied.Images[1].From; from != filepath.Join(to, "images/root.tar") ||
		copied.Images[2].From != filepath.Join(to, "images/oci") || copied.Images[3].From != "" {
		t.Errorf("images are read from %+v", copied.Images)
	}
	for i := range copied.Images {
		copied.Images[i].From = ""
	}
	if !reflect.DeepEqual(kept, original) || !reflect.DeepEqual(copied, original) {
		t.Errorf("got\n%+v\nwant\n%+v", copied, original)
	}
	var names []string
	must(t, filepath.WalkDir(to, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			name, _ := filepath.Rel(to, path)
			names = append(names, name)
			info, err := e.Info()
			must(t, err)
			source, err := os.Stat(filepath.Join(dir, name))
			must(t, err)
			if !info.Mode().IsRegular() || os.SameFile(info, source) {
				t.Errorf("%s is a link, or the same file", name)
			}
		}
		return err
	}))
	want := []string{
		".certs/ca.pem", "images/oci/blobs/sha256/0", "images/oci/index.json", "images/root.tar", "pins/.all.txt",
		"roles/linked/.hidden",
		"roles/linked/role.toml", "roles/linked/sub/file", "roles/plain/role.toml", "site.toml",
	}
	if slices.Sort(names); !slices.Equal(names, want) {
		t.Errorf("got  %q\nwant %q", names, want)
	}
	must(t, os.WriteFile(filepath.Join(dir, "images/root.tar"), []byte("other"), 0o644))
	if text, _ := os.ReadFile(filepath.Join(to, "images/root.tar")); len(text) != 5<<20 {
		t.Error("writing to an image changes the copy")
	}
}
