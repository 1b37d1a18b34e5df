package vault

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnnamed: if a backup does not get its name, it was not taken, and Commit returns an error.
func TestUnnamed(t *testing.T) {
	m := func() *Manifest { return &Manifest{Format: Format, Site: "s", Key: "s", Time: noon} }
	for what, spoil := range map[string]func(t *testing.T, path string){
		"another file has got the name": func(t *testing.T, path string) {
			wanted(t, os.WriteFile(path, []byte("precious"), 0o600))
		},
		"the file was removed meanwhile": func(t *testing.T, path string) { wanted(t, os.Remove(path+".part")) },
		"the directory was removed meanwhile": func(t *testing.T, path string) {
			wanted(t, os.RemoveAll(filepath.Dir(path)))
		},
	} {
		path := filepath.Join(t.TempDir(), "to", "b.tar")
		wanted(t, os.Mkdir(filepath.Dir(path), 0o700))
		a, err := WriteArchive(path)
		wanted(t, err)
		spoil(t, path)
		if id, err := a.Commit(m()); err == nil || id != "" || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: it is backup %q, %v", what, id, err)
		}
		if text, err := os.ReadFile(path); err == nil && string(text) != "precious" {
			t.Errorf("%s: the other file is overwritten", what)
		}
		wanted(t, a.Close())
	}
	dir := filepath.Join(t.TempDir(), "v")
	r := written(t, dir)
	first := committed(t, r, "s", noon)
	name := filepath.Join(dir, "backups")
	wanted(t, os.Rename(name, name+".x"))
	wanted(t, os.WriteFile(name, nil, 0o600)) // not a directory, so no manifest can be written there
	if id, err := r.Commit(m()); err == nil || id != "" {
		t.Errorf("into a repository without a place for it: it is backup %q, %v", id, err)
	}
	wanted(t, os.Remove(name))
	wanted(t, os.Rename(name+".x", name))
	if got := backupsIn(t, r); len(got) != 1 || got[0] != first {
		t.Errorf("the repository has %v", got)
	}
}
