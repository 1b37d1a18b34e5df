package image

import (
	"slices"
	"strings"
	"testing"
)

// TestScratchHooks: settings that others have added to LXC's profiles for every container, as lxcfs
// does, do not apply to builds. An empty value removes the earlier ones.
func TestScratchHooks(t *testing.T) {
	lines := strings.Split(containerConfig, "\n")
	included := 0
	for i, line := range lines {
		if strings.HasPrefix(line, "lxc.include") {
			included = i
		}
	}
	for _, want := range []string{"lxc.hook.mount =", "lxc.hook.post-stop ="} {
		if slices.Index(lines, want) < included {
			t.Errorf("%q is not behind what is included", want)
		}
	}
}
