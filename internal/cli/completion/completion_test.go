package completion

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/host"
)

// TestPathsIn: paths in a node are offered, except names with a special meaning for shells or
// terminals.
func TestPathsIn(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"log", "logs.d/x", ".hidden", "lo$(reboot)", "lo\x1b[2J", "lo'g", "other"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for begin, want := range map[string]string{"/lo": "/log /logs.d/", "/": "/.hidden /log /logs.d/ /other",
		"/logs.d/": "/logs.d/x", "/none/": ""} {
		got := pathsIn(t.Context(), host.Local{}, dir+begin)
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], dir)
		}
		slices.Sort(got)
		if joined := strings.Join(got, " "); joined != want {
			t.Errorf("%s: %q, want %q", begin, joined, want)
		}
	}
}
