package ends

import (
	"testing"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestNoTap: a machine is on no network whose interfaces containers take or stand on.
func TestNoTap(t *testing.T) {
	for _, kind := range []string{site.Macvlan, site.Exclusive} {
		if _, err := OpenTap(spec.NIC{Name: "eth0", HostEnd: "orv1"}, kind, 1); problem.Exit(err) != int(problem.Unable) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestWhereabouts: a link that is not there is nowhere, whatever is on record.
func TestWhereabouts(t *testing.T) {
	nic := spec.NIC{HostEnd: "orvnotthere", Bridge: "orb1"}
	for _, kind := range []string{site.Bridge, site.Routed} {
		if at := Whereabouts(nic, kind); at != "" {
			t.Errorf("%s: at %q", kind, at)
		}
	}
}
