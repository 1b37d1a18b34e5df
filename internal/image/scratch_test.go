package image

import (
	"slices"
	"strings"
	"testing"
)

// TestScratchHooks: what others have put into LXC's profiles for every container, as lxcfs does, is
// not for builds: an empty value takes away what was said before.
func TestScratchHooks(t *testing.T) {
	lines := strings.Split(scratchConfig, "\n")
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
