package cgroup

import (
	"testing"

	"orrery/internal/site"
)

// TestEqualPins: pins are compared as the kernel takes them, however they are written; one to all processors is none.
func TestEqualPins(t *testing.T) {
	all := onlineCpus()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"0,1", "0-1", true}, {"1,0", "0-1", true}, {"3,0-2", "0-3", true}, {"0", "1023", false}, {all, "", true}, {"", all, true}, {"1000", "", false},
	} {
		if got := equal(site.Limits{Pin: c.a}, site.Limits{Pin: c.b}); got != c.want {
			t.Errorf("%q and %q: %v", c.a, c.b, got)
		}
	}
}
