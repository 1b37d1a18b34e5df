package ends

import (
	"testing"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestNoTap: a machine cannot be on a network whose interfaces containers take or whose links are
// on an interface.
func TestNoTap(t *testing.T) {
	for _, kind := range []string{site.Macvlan, site.Exclusive} {
		_, err := OpenTap(spec.NIC{Name: "eth0", HostIfName: "orv1"}, kind, 1)
		if problem.ExitCode(err) != int(problem.Unable) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestWhereabouts: a link that does not exist is nowhere, whatever is recorded.
func TestWhereabouts(t *testing.T) {
	nic := spec.NIC{HostIfName: "orvnotthere", Bridge: "orb1"}
	for _, kind := range []string{site.Bridge, site.Routed} {
		if at := BridgeOfNIC(nic, kind); at != "" {
			t.Errorf("%s: at %q", kind, at)
		}
	}
}
