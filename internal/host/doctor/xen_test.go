package doctor

import (
	"testing"

	"orrery/internal/problem"
)

// TestXen checks that a host that is not a Dom0 gets a cure, and that nothing else is reported as
// missing.
func TestXen(t *testing.T) {
	expectFact(t, onXen("4.17.5", nil), true, "4.17.5")
	f := onXen("", problem.New(problem.Unable, "this host does not run on Xen").Try("boot Xen"))
	expectFact(t, f, false, "does not run on Xen: no guests of Xen")
	if f.Fix != "boot Xen" {
		t.Errorf("%+v", f)
	}
}
