package guard

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/host"
	"orrery/internal/site/spec"
)

// TestMain lets the test program be the guard, which stores what it is told.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != "thaw" {
		os.Exit(m.Run())
	}
	said, err := io.ReadAll(os.Stdin)
	text := strings.Join(os.Args[2:], " ") + "; " + os.Getenv("ORRERY_RUN") + "; " + string(said)
	if err == nil {
		err = os.WriteFile(filepath.Join(os.Getenv("ORRERY_STATE"), "said"), []byte(text), 0o600)
	}
	if err != nil {
		panic(err)
	}
}

// TestStart: the guard knows which nodes are frozen. When it is released, it ends and does nothing.
func TestStart(t *testing.T) {
	dirs := host.Dirs{State: t.TempDir(), Run: t.TempDir()}
	letGo, err := Start(dirs, []*spec.Node{{Engine: "lxc", Site: "karoo", ID: 7, Name: "web"},
		{Engine: "kvm", Site: "karoo", ID: 8, Name: "db"}})
	if err != nil {
		t.Fatal(err)
	}
	letGo()
	text, err := os.ReadFile(filepath.Join(dirs.State, "said"))
	if want := "lxc/karoo/7/web kvm/karoo/8/db; " + dirs.Run + "; " + allRunning; string(text) != want {
		t.Errorf("the guard knew %q (%v), not %q", text, err, want)
	}
}
