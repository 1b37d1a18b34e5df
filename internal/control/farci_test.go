package control_test

import (
	"os"
	"testing"

	proof "orrery/internal/control/ci"
)

// TestFarProof: a site with several hosts is tested in a twin on all of them, and nothing of the
// twin is left.
func TestFarProof(t *testing.T) {
	d, other := farDesk(t)
	d.write("site.toml", twoHosts+"[test.answers]\nnode = \"web1\"\ncommand = [\"ask\"]\n")
	d.Confirmer = nil
	p, w, err := d.prove(proof.Options{})
	d.must(err)
	if w.outcomes() != "answers passed" || p.Kept {
		t.Errorf("the tests: %s", w.outcomes())
	}
	for _, m := range []*machine{d.machine, other} {
		if all, err := os.ReadDir(m.dirs.Site("")); err != nil || len(all) != 1 {
			t.Errorf("left are %v (%v)", all, err)
		}
		if waiting, _ := m.Waiting(); len(waiting) > 0 {
			t.Errorf("waiting are %v", waiting)
		}
	}
}
