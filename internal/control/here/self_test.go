package here

import (
	"os"
	"path/filepath"
	"testing"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// TestSelf: two names are one host if they lead to the same state directory, by whatever path. If
// there is no state directory, the machine is unknown.
func TestSelf(t *testing.T) {
	dir := t.TempDir()
	at := func(state string) string {
		return LocalMachine{Dirs: host.Dirs{State: filepath.Join(dir, state)}, Version: "v1"}.Self().Machine
	}
	if none := at("one"); none != "" {
		t.Errorf("where nothing was done, it is %q", none)
	}
	for _, name := range []string{"one", "two"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("one", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if at("one") == "" || at("one") != at("link") || at("one") == at("two") {
		t.Errorf("they are %q, %q and %q", at("one"), at("link"), at("two"))
	}
	self := LocalMachine{Dirs: host.Dirs{State: dir}, Version: "v1"}.Self()
	if name, _ := os.Hostname(); self.Version != "v1" || self.Hostname != name {
		t.Errorf("it is %+v", self)
	}
}

// TestAllowed: only root may change this machine, or serve requests of another one.
func TestAllowed(t *testing.T) {
	m := LocalMachine{Dirs: host.Dirs{State: t.TempDir(), Run: t.TempDir()}}
	err := m.Allowed()
	if root := os.Geteuid() == 0; root != (err == nil) || !root && !problem.Is(err, problem.Unable) {
		t.Errorf("the user %d is told %v", os.Geteuid(), err)
	}
	if err != nil {
		if helped := m.ServeHelper(t.Context(), nil); !problem.Is(helped, problem.Unable) {
			t.Errorf("asked to help: %v", helped)
		}
	}
}
