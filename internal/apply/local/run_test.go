package local

import (
	"os"
	"path/filepath"
	"testing"

	"orrery/internal/host"
	"orrery/internal/role"
)

// TestKeptFiles: the former files of a node are returned in reverse order. An unreadable file is an
// error, because undoing without it would leave a node half changed.
func TestKeptFiles(t *testing.T) {
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	r := runOf(host.Dirs{State: t.TempDir(), Run: t.TempDir()}, "karoo")
	if all, known, err := r.savedFiles(1); len(all) > 0 || known || err != nil {
		t.Errorf("where nothing was to be kept: %v, %t, %v", all, known, err)
	}
	check(r.startSaving(1))
	if all, known, err := r.savedFiles(1); len(all) > 0 || !known || err != nil {
		t.Errorf("where nothing has been kept: %v, %t, %v", all, known, err)
	}
	for _, path := range []string{"/etc/a", "/etc/b", "/etc/c"} {
		check(r.saveFiles(1, role.Saved{Paths: []string{path}}))
	}
	dir := filepath.Join(r.dir, "1", "files")
	check(os.WriteFile(filepath.Join(dir, ".half"), []byte("{"), 0o600)) // by a killed run
	all, known, err := r.savedFiles(1)
	if err != nil || !known || len(all) != 3 || all[0].Paths[0] != "/etc/c" || all[2].Paths[0] != "/etc/a" {
		t.Errorf("%v, %t, %v", all, known, err)
	}
	if other, known, err := r.savedFiles(2); len(other) > 0 || known || err != nil {
		t.Errorf("of another node: %v, %t, %v", other, known, err)
	}
	check(os.WriteFile(filepath.Join(dir, "000001.json"), []byte("{"), 0o600))
	if _, _, err := r.savedFiles(1); err == nil {
		t.Error("a file that cannot be read is passed over")
	}
	check(os.RemoveAll(dir))
	check(os.WriteFile(dir, nil, 0o600))
	if _, _, err := r.savedFiles(1); err == nil {
		t.Error("a directory that cannot be read is empty")
	}
	if err := r.saveFiles(1, role.Saved{Paths: []string{"/etc/d"}}); err == nil {
		t.Error("what cannot be kept is kept")
	}
	check(r.end())
	if _, known, err := r.savedFiles(1); known || err != nil {
		t.Errorf("at the end: %t, %v", known, err)
	}
}
