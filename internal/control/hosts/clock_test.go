package hosts

import (
	"strings"
	"testing"
	"time"
)

// TestClocksApart: a clock difference is reported with the host and a cure, if it exceeds what the
// round-trip time can explain.
func TestClocksApart(t *testing.T) {
	for _, c := range []struct {
		skew, took time.Duration
		apart      bool
	}{{time.Second, 0, false}, {3 * time.Second, 0, true}, {3 * time.Second, 4 * time.Second, false},
		{40 * 24 * time.Hour, 4 * time.Second, true}} {
		if skewTooLarge(c.skew, c.took) != c.apart {
			t.Errorf("%s of skew, asked within %s: %v", c.skew, c.took, !c.apart)
		}
	}
	for skew, want := range map[time.Duration]string{time.Hour: "1h0m0s ahead of", -time.Hour: "1h0m0s behind"} {
		if text := skewError("sv2", skew).Error(); !strings.Contains(text,
			"the clock of host sv2 is "+want+" that of this machine") || !strings.Contains(text, "chrony") {
			t.Error(text)
		}
	}
}
