package prove

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestJudge: each verdict has its reasons.
func TestJudge(t *testing.T) {
	at := func(shares ...float64) (all []Reading) {
		for _, s := range shares {
			all = append(all, Reading{Rate: 1e6 * s, Offered: 2e6, Busy: 0.5, Stopped: 1})
		}
		return all
	}
	slow := func(r Reading) Reading { r.Offered = 9e5; return r }
	unknown := func(r Reading) Reading { r.Offered = 0; return r }
	crowded := func(r Reading) Reading { r.Busy = 1; return r }
	unstopped := func(r Reading) Reading { r.Offered, r.Stopped = 0, 0.5; return r }
	one := func(share float64, change func(Reading) Reading) []Reading { return []Reading{change(at(share)[0])} }
	for name, c := range map[string]struct {
		kind          string
		again, rounds []Reading
		without       float64
		want          Verdict
		why           string
	}{
		"exact":                  {kind: ToNode, rounds: at(1, 1, 1), want: Holds},
		"at the edge":            {kind: ToNode, rounds: at(0.971, 0.971, 0.971), want: Holds},
		"one round is odd":       {kind: ToNode, rounds: at(1, 1, 0.9), want: Untold, why: "by 10.0 %"},
		"A/A differs":            {kind: ToNode, again: at(1, 1.05), rounds: at(1, 1, 1), want: Untold, why: "by 5.0 %"},
		"twice too high":         {kind: Read, rounds: at(2, 2.1, 2), want: TooHigh},
		"too high, in doubt":     {kind: Read, rounds: at(1.05, 1.2, 1), want: Untold, why: "differ"},
		"too low":                {kind: ToNode, rounds: at(0.9, 0.9, 0.91), want: TooLow},
		"the sender is slow":     {kind: ToNode, rounds: one(0.9, slow), want: Untold, why: "sends only 900 kbit/s"},
		"the disk is slow":       {kind: Read, rounds: one(0.9, unknown), without: 9.1e5, want: Untold, why: "only 910"},
		"the disk is fast":       {kind: Read, rounds: one(0.9, unknown), without: 5e6, want: TooLow},
		"the host is busy":       {kind: ToNode, rounds: one(0.9, crowded), want: Untold, why: "all processors"},
		"busy, and too high":     {kind: ToNode, rounds: one(1.9, crowded), want: TooHigh},
		"processors are busy":    {kind: Processors, rounds: one(0.9, unstopped), want: Untold, why: "other programs"},
		"processors are limited": {kind: Processors, rounds: one(0.9, unknown), want: TooLow},
		"no rounds":              {kind: ToNode, want: Untold, why: "nothing was measured"},
		"nothing passes":         {kind: ToNode, rounds: at(0, 0, 0), want: TooLow},
	} {
		unit := map[string]string{ToNode: BitsPerSecond, Read: BytesPerSecond, Processors: CPUs}[c.kind]
		r := Row{Limit: Limit{Kind: c.kind, Value: 1e6, Unit: unit}, Again: c.again, Rounds: c.rounds}
		r.judge(c.without)
		if r.Verdict != c.want || !strings.Contains(r.Why, c.why) || (r.Why == "") != (c.want != Untold) {
			t.Errorf("%s: %q because %q, want %q because %q", name, r.Verdict, r.Why, c.want, c.why)
		}
	}
}

// TestJudgeAlways: whatever is measured, a verdict other than "cannot be told" is what the figures say,
// and no verdict depends on the scale.
func TestJudgeAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reading := rapid.Custom(func(t *rapid.T) Reading {
			return Reading{Rate: rapid.Float64Range(0, 3).Draw(t, "rate"),
				Offered: rapid.Float64Range(0, 3).Draw(t, "offered"),
				Busy:    rapid.Float64Range(0, 1).Draw(t, "busy"), Stopped: rapid.Float64Range(0, 1).Draw(t, "stopped")}
		})
		r := Row{Limit: Limit{Value: 1, Kind: rapid.SampledFrom([]string{ToNode, Read, Processors}).Draw(t, "kind")},
			Again:  rapid.SliceOfN(reading, 2, 2).Draw(t, "again"),
			Rounds: rapid.SliceOfN(reading, 0, 5).Draw(t, "rounds")}
		without := rapid.Float64Range(0, 3).Draw(t, "without")
		r.judge(without)
		off := r.Measured - 1
		switch r.Verdict {
		case Holds:
			if math.Abs(off) > holds+1e-9 {
				t.Fatalf("%v holds", r.Measured)
			}
		case TooHigh:
			if off <= holds {
				t.Fatalf("%v is too high", r.Measured)
			}
		case TooLow:
			if off >= -holds {
				t.Fatalf("%v is too low", r.Measured)
			}
		case Untold:
			if r.Why == "" {
				t.Fatal("no reason")
			}
		default:
			t.Fatalf("verdict %q", r.Verdict)
		}
		if text := r.Text(); text == "" || strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Fatal(text)
		}

		const scale = 1 << 20 // a power of two changes no rounding
		s := Row{Limit: r.Limit}
		s.Value *= scale
		for _, g := range r.Again {
			s.Again = append(s.Again, Reading{g.Rate * scale, g.Offered * scale, g.Busy, g.Stopped})
		}
		for _, g := range r.Rounds {
			s.Rounds = append(s.Rounds, Reading{g.Rate * scale, g.Offered * scale, g.Busy, g.Stopped})
		}
		if s.judge(without * scale); s.Verdict != r.Verdict {
			t.Fatalf("%q, and %q in another unit", r.Verdict, s.Verdict)
		}
	})
}

// TestFormat: figures have units that a person reads.
func TestFormat(t *testing.T) {
	for _, c := range []struct {
		value      float64
		unit, want string
	}{
		{1e9, BitsPerSecond, "1 Gbit/s"}, {2.5e6, BitsPerSecond, "2.5 Mbit/s"}, {999, BytesPerSecond, "999 B/s"},
		{64e3, BytesPerSecond, "64 kB/s"}, {1500, RequestsPerSecond, "1500 requests/s"}, {0.5, CPUs, "0.5 processors"},
		{512 << 20, Bytes, "512 MiB"}, {100000, Count, "100000"},
	} {
		if got := Format(c.value, c.unit); got != c.want {
			t.Errorf("%v %s is %q, want %q", c.value, c.unit, got, c.want)
		}
	}
}
