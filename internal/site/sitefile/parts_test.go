package sitefile

import (
	"fmt"
	"strings"
	"testing"
)

// TestLate: a mistake near the end of a large file is reported with its line, even if strict.Parse
// parses the file in two parts.
func TestLate(t *testing.T) {
	text := large(1500)
	line := strings.Count(text, "\n") + 1
	for more, wrong := range map[string]string{
		"[node.n0]\n":     fmt.Sprintf("site.toml:%d: this is not TOML: table n0 already exists", line),
		"[a]\nx = 1\nx=2": fmt.Sprintf("site.toml:%d: this is not TOML: key x is already defined", line+2),
		"[b]\nid=1x":      fmt.Sprintf("site.toml:%d: this is not TOML: ", line+1),
	} {
		l := newLoader(nowhere())
		l.load([]byte(text + more))
		if list := l.report.list(); len(list) != 1 || !strings.HasPrefix(list.Error(), wrong) {
			t.Errorf("%v, not %s", list, wrong)
		}
	}
}
