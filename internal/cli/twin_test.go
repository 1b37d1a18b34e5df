package cli

import (
	"bytes"
	"strings"
	"testing"
)

// TestTwinFirst: `twin VERB NAME` is the same as the verb with --twin, whatever flags come before
// the name.
func TestTwinFirst(t *testing.T) {
	t.Setenv("ORRERY_STATE", t.TempDir())
	t.Setenv("ORRERY_RUN", t.TempDir())
	const site = "../../examples/toykat"
	for _, line := range []string{
		"-C SITE twin status dev1", "twin status -C SITE dev1", "twin -C SITE status dev1 --usage",
		"-C SITE twin shell dev1 portal -- true",
		"-C SITE twin exec dev1 portal -- true", "-C SITE twin forward dev1 portal:80",
	} {
		var out, errs bytes.Buffer
		status := Run(strings.Fields(strings.ReplaceAll(line, "SITE", site)), nil, strings.NewReader(""), &out, &errs)
		if status != 3 || !strings.Contains(errs.String(), `site toykat has no twin "dev1"`) {
			t.Errorf("orrery %s: status %d: %s", line, status, errs.String())
		}
	}
}
