package host

import (
	"os"
	"path/filepath"
	"testing"
)

// TestReplace: what was there goes once the new one is in its place, and stays if that cannot be.
func TestReplace(t *testing.T) {
	for name, replace := range map[string]func(fresh, to string) error{"at once": Replace, "in steps": replaceInSteps} {
		dir := t.TempDir()
		fresh, to := filepath.Join(dir, "fresh"), filepath.Join(dir, "to")
		put := func(at, text string) {
			t.Helper()
			if err := os.MkdirAll(at, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(at, "file"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want := func(text string) {
			t.Helper()
			if has, err := os.ReadFile(filepath.Join(to, "file")); err != nil || string(has) != text {
				t.Errorf("%s: there is %q, not %q: %v", name, has, text, err)
			}
			if all, _ := os.ReadDir(dir); len(all) != 1 {
				t.Errorf("%s: left are %v", name, all)
			}
		}
		put(to, "former")
		put(fresh, "new")
		if err := replace(fresh, to); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want("new")
		if err := replace(fresh, to); err == nil {
			t.Errorf("%s: nothing took its place", name)
		}
		want("new")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "fresh"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Replace(filepath.Join(dir, "fresh"), filepath.Join(dir, "to")); err != nil {
		t.Errorf("where nothing was: %v", err)
	}
}
