package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckUnused: check names roles that no node has, and refuses flags that exclude one another.
func TestCheckUnused(t *testing.T) {
	dir := t.TempDir()
	mustDo(t, os.WriteFile(filepath.Join(dir, "site.toml"), []byte("site.name = \"a\"\n"), 0o600))
	mustDo(t, os.MkdirAll(filepath.Join(dir, "roles/spare"), 0o700))
	mustDo(t, os.WriteFile(filepath.Join(dir, "roles/spare/role.toml"), []byte("description = \"\"\n"), 0o600))
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{nil, 0, "a: 0 nodes, 1 role (1 of them unused: spare), 0 networks: no mistakes."},
		{[]string{"--json"}, 0, `"spare"`},
		{[]string{"--watch", "--json"}, 2, "--watch prints no JSON"},
		{[]string{"--watch", "--survive", "1"}, 2, "survive"},
	} {
		var out bytes.Buffer
		status := Run(append([]string{"-C", dir, "check"}, c.args...), nil, strings.NewReader(""), &out, &out)
		if status != c.status || !strings.Contains(out.String(), c.want) {
			t.Errorf("%v: %d, %s", c.args, status, out.String())
		}
	}
}
