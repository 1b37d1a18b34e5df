package hosts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestCheckDisks: check and plan find a disk image that cannot be booted and name the cure. A plan
// needs only the files from which it builds layers.
func TestCheckDisks(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ name, text, want string }{
		{"junk.qcow2", "junk", "junk.qcow2: it is not a qcow2 image (download it again"},
		{"other.img", "KDMV" + strings.Repeat("x", 508), "other.img: it is a VMDK image (convert it"},
		{"gone.raw", "", "gone.raw: it cannot be read"},
		{"good.raw", strings.Repeat("x", 1024), ""},
		{"tree.tar", "junk", ""}, // which is not a disk
	} {
		file := filepath.Join(dir, c.name)
		if c.text != "" {
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		img := site.Image{Name: "imported", Import: file}
		step := &plan.Step{Kind: plan.BuildLayer, Layer: spec.Base(site.Mirror{}, img)}
		for _, err := range []error{CheckDisks(&site.Site{Images: []site.Image{img}}),
			CheckPlannedDisks(&plan.Plan{Steps: []*plan.Step{step}})} {
			if (err == nil) != (c.want == "") || err != nil &&
				(!strings.Contains(err.Error(), c.want) || !problem.Is(err, problem.Mistake)) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if err := CheckPlannedDisks(&plan.Plan{Steps: []*plan.Step{{Kind: plan.CreateNode}}}); err != nil {
			t.Errorf("nothing is made of %s: %v", c.name, err)
		}
	}
}
