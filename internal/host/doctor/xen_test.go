package doctor

import (
	"testing"

	"orrery/internal/problem"
)

// TestXen: a host that is no Dom0 is told what it would take, and that nothing else is missing.
func TestXen(t *testing.T) {
	expectFact(t, onXen("4.17.5", nil), true, "4.17.5")
	f := onXen("", problem.New(problem.Unable, "this host does not run on Xen").Try("boot Xen"))
	expectFact(t, f, false, "does not run on Xen: no guests of Xen")
	if f.Fix != "boot Xen" {
		t.Errorf("%+v", f)
	}
}
