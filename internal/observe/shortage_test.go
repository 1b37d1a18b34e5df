package observe

import (
	"math"
	"testing"
)

// TestShortage: little is left from 90 % on. Numbers of other hosts may be anything.
func TestShortage(t *testing.T) {
	for _, c := range []struct {
		used, size int64
		percent    int
		short      bool
	}{
		{0, 0, 0, false}, {5, 0, 100, false}, {89, 100, 89, false}, {899, 1000, 89, false}, {90, 100, 90, true},
		{100, 100, 100, true}, {200, 100, 100, true}, {-1, 100, 0, false}, {5, -7, 100, false},
		{math.MaxInt64, 1, 100, true}, {math.MaxInt64, math.MaxInt64, 100, true}, {math.MinInt64, math.MaxInt64, 0, false},
	} {
		s := Shortage{Of: ShortDisk, Used: c.used, Size: c.size}
		if s.Percent() != c.percent || s.Short() != c.short {
			t.Errorf("%d of %d: %d %%, %t", c.used, c.size, s.Percent(), s.Short())
		}
	}
}
