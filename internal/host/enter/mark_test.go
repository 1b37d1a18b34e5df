package enter

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"orrery/internal/host/process"
)

// TestIsOrphan checks that a command is an orphan if its parent is neither its caller nor in the
// container. A process of the container with the same environment, such as a daemon that a command
// left behind, is not.
func TestIsOrphan(t *testing.T) {
	for name, c := range map[string]struct {
		parent, session int
		environ         string
		want            bool
	}{
		"waited for":               {99, 7, CallerEnv(99) + "\x00PATH=/bin\x00", false},
		"caller has ended":         {1, 7, CallerEnv(99) + "\x00PATH=/bin\x00", true},
		"only variable":            {1, 7, CallerEnv(99), true},
		"started in the container": {8, 7, CallerEnv(99) + "\x00", false},
		"in a session of another":  {1, 6, CallerEnv(99) + "\x00", false},
		"without a mark":           {1, 7, "PATH=/bin\x00", false},
		"with a later mark":        {1, 7, "A=b\x00" + CallerEnv(99), false},
		"with a long mark":         {1, 7, CallerEnv(99) + fmt.Sprintf("%0100d", 1), false},
		"with no number":           {1, 7, callerVariable + "x\x00", false},
	} {
		table := process.Table(t.TempDir())
		if err := os.MkdirAll(filepath.Dir(table.File(7, "stat")), 0o755); err != nil {
			t.Fatal(err)
		}
		stat := fmt.Sprintf("7 (x) y) S %d %d %d 0 -1 4194560", c.parent, c.session, c.session)
		for file, text := range map[string]string{"stat": stat, "environ": c.environ} {
			if err := os.WriteFile(table.File(7, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := isOrphan(table, 7, []int{5, 7, 8}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
