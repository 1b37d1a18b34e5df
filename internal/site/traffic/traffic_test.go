package traffic

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestRates: what a site file may write, and how it is displayed.
func TestRates(t *testing.T) {
	for text, want := range map[string]string{
		"1Gbit/s": "1Gbit/s", "1000Mbit/s": "1Gbit/s", "0.5 Gbit/s": "500Mbit/s", "8kbit/s": "8kbit/s",
		"8000bit/s": "8kbit/s", "1.5Mbit/s": "1.5Mbit/s", "8001bit/s": "8.001kbit/s", "1Tbit/s": "1Tbit/s",
		"123456789bit/s": "123456.789kbit/s",
	} {
		var r Rate
		if p := r.Parse(text); p != nil || r.String() != want {
			t.Errorf("%s is %s, %v", text, r, p)
		}
	}
	for _, wrong := range []any{
		"", "1", 1, int64(5), true, nil, "1G", "1Gbit", "1GiB/s", "1e9bit/s", "-1Mbit/s", "0bit/s", "1kbit/s", "2Tbit/s",
		"NaNbit/s", "1.2.3Mbit/s", "1.5bit/s", "Mbit/s", " Mbit/s", ".Mbit/s", "1/2Mbit/s", "0x1Mbit/s", "1_000Mbit/s",
		strings.Repeat("9", 1000) + "Mbit/s", "99999999999999999999Tbit/s", "1\x00Mbit/s",
	} {
		var r Rate
		if p := r.Parse(wrong); p == nil || r != 0 {
			t.Errorf("%v is read as %s", wrong, r)
		}
	}
}

// TestLosses: what a site file may write, and how it is displayed.
func TestLosses(t *testing.T) {
	for text, want := range map[string]string{"0.1%": "0.1%", "100%": "100%", "0.0001%": "0.0001%", "2.50 %": "2.5%"} {
		var l Loss
		if p := l.Parse(text); p != nil || l.String() != want {
			t.Errorf("%s is %s, %v", text, l, p)
		}
	}
	for _, wrong := range []any{"", "%", "1", 1, 0.1, "0%", "101%", "0.00001%", "-1%", "1e1%", "1%%", nil, "NaN%"} {
		var l Loss
		if p := l.Parse(wrong); p == nil || l != 0 {
			t.Errorf("%v is read as %s", wrong, l)
		}
	}
}

// TestReadsWhatItWrites: a displayed rate or share is read as the same one, and a share survives the
// kernel's form.
func TestReadsWhatItWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := Rate(rapid.Int64Range(int64(MinRate), int64(MaxRate)).Draw(t, "rate"))
		var r Rate
		if p := r.Parse(rate.String()); p != nil || r != rate {
			t.Fatalf("%d is displayed as %s and read as %d: %v", rate, rate, r, p)
		}
		loss := Loss(rapid.Int64Range(1, int64(maxLoss)).Draw(t, "loss"))
		var l Loss
		if p := l.Parse(loss.String()); p != nil || l != loss || LossOf32(loss.Of32()) != loss {
			t.Fatalf("%d is displayed as %s and read as %d, and by the kernel as %d: %v", loss, loss, l,
				LossOf32(loss.Of32()), p)
		}
	})
}

// TestString lists what is limited.
func TestString(t *testing.T) {
	l := Limits{Rate: 1e9, Burst: 64 << 10, Latency: 5 * time.Millisecond, Jitter: time.Millisecond, Loss: 1000}
	if got := l.String(); got != "rate 1Gbit/s, burst 64.0 KiB, latency 5ms, jitter 1ms, loss 0.1%" {
		t.Error(got)
	}
	if !l.Delays() || (Limits{Rate: 1}).Delays() || (Limits{}).String() != "" {
		t.Error("it is wrong about delays")
	}
}

// TestBounds: defaults follow the rate.
func TestBounds(t *testing.T) {
	for rate, want := range map[Rate][2]int64{
		8000: {16 << 10, 256 << 10}, 1e9: {125_000, 6_250_000}, MaxRate: {125_000_000, 32 << 20},
	} {
		l := Limits{Rate: rate}
		if l.BurstBytes() != want[0] || l.QueueBytes() != want[1] {
			t.Errorf("%s: %d %d", rate, l.BurstBytes(), l.QueueBytes())
		}
	}
	if l := (Limits{Rate: 8000, Burst: 1 << 20}); l.BurstBytes() != 1<<20 || l.QueueBytes() != 256<<10 {
		t.Errorf("%d %d", l.BurstBytes(), l.QueueBytes())
	}
}
