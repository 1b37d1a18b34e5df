package prove

import (
	"fmt"
	"math"
	"slices"
)

// holds is how much a limit may be missed by, as a share.
const holds = 0.03

// A Verdict says whether a limit holds.
type Verdict string

// The verdicts.
const (
	Holds   Verdict = "holds"
	TooHigh Verdict = "too high"
	TooLow  Verdict = "too low"
	Untold  Verdict = "cannot be told"
)

// A Reading is what came through in one round, and how the load and the host were.
type Reading struct {
	Rate    float64 `json:"rate"`    // in the limit's unit
	Offered float64 `json:"offered"` // what the load wanted, in the same unit, or 0 if it cannot be known
	Busy    float64 `json:"busy"`    // share of the host's processor time that was used
	Stopped float64 `json:"stopped"` // share of scheduling periods in which the limit stopped processors
}

// A Row is the proof of a limit of a node.
type Row struct {
	Node string `json:"node"`
	Limit
	Again     []Reading `json:"again,omitempty"` // the same load twice, before the rounds
	Rounds    []Reading `json:"rounds,omitempty"`
	Measured  float64   `json:"measured"`  // median of the rounds
	Deviation float64   `json:"deviation"` // of Measured, as a share of the limit
	Spread    float64   `json:"spread"`    // between equal loads, as a share of the limit
	Verdict   Verdict   `json:"verdict"`
	Why       string    `json:"why,omitempty"` // why it cannot be told
	Neighbour *Beside   `json:"neighbour,omitempty"`
}

// A Beside is what the same load got on the next node, alone and while the first node was at its
// limit.
type Beside struct {
	Node   string  `json:"node"`
	Alone  float64 `json:"alone"`
	Beside float64 `json:"beside"`
	Ratio  float64 `json:"ratio"` // 1: the first node costs the next one nothing
	Why    string  `json:"why,omitempty"`
}

// untold sets why a limit cannot be told.
func (r *Row) untold(format string, args ...any) {
	r.Verdict, r.Why = Untold, fmt.Sprintf(format, args...)
}

// judge sets the verdict. Without is what the same load gets without the limit, or 0 if unknown.
func (r *Row) judge(without float64) {
	var rates, offered, busy, stopped []float64
	for _, g := range r.Rounds {
		rates, offered = append(rates, g.Rate), append(offered, g.Offered)
		busy, stopped = append(busy, g.Busy), append(stopped, g.Stopped)
	}
	if len(rates) == 0 || r.Value <= 0 {
		r.untold("nothing was measured")
		return
	}
	r.Measured = median(rates)
	r.Deviation = r.Measured/r.Value - 1
	r.Spread = (slices.Max(rates) - slices.Min(rates)) / r.Value
	if len(r.Again) == 2 {
		r.Spread = math.Max(r.Spread, math.Abs(r.Again[0].Rate-r.Again[1].Rate)/r.Value)
	}
	wanted, used := median(offered), median(busy)
	switch {
	case r.Deviation > holds && r.Deviation-holds > r.Spread:
		r.Verdict = TooHigh
	case r.Deviation < -holds && wanted > 0 && wanted < r.Value*(1+holds):
		r.untold("this host sends only %s", Format(wanted, r.Unit))
	case r.Deviation < -holds && without > 0 && without < r.Value*(1+holds):
		r.untold("this host reaches only %s without the limit", Format(without, r.Unit))
	case r.Deviation < -holds && r.Kind == Processors && median(stopped) < 0.8:
		r.untold("other programs used the processors")
	case r.Deviation < -holds && r.Kind != Processors && used > 0.95:
		r.untold("all processors of the host were busy")
	case r.Deviation < -holds && -r.Deviation-holds > r.Spread:
		r.Verdict = TooLow
	case math.Abs(r.Deviation) <= holds && r.Spread <= holds:
		r.Verdict = Holds
	default:
		r.untold("equal loads differ by %.1f %% of the limit", 100*r.Spread)
	}
}

// Text returns the verdict of a row in words.
func (r *Row) Text() string {
	switch {
	case r.Verdict == Holds:
		return fmt.Sprintf("holds within %.0f %%", 100*holds)
	case r.Why != "":
		return string(r.Verdict) + " here because " + r.Why
	default:
		return string(r.Verdict)
	}
}

// Format returns a rate with its unit.
func Format(value float64, unit string) string {
	switch unit {
	case BitsPerSecond, BytesPerSecond:
		for _, p := range []struct {
			name  string
			scale float64
		}{{"G", 1e9}, {"M", 1e6}, {"k", 1e3}} {
			if value >= p.scale {
				return fmt.Sprintf("%.4g %s%s", value/p.scale, p.name, unit)
			}
		}
		return fmt.Sprintf("%.4g %s", value, unit)
	case RequestsPerSecond:
		return fmt.Sprintf("%.4g requests/s", value)
	case Bytes:
		return fmt.Sprintf("%.4g MiB", value/(1<<20))
	case Count:
		return fmt.Sprintf("%.0f", value)
	default:
		return fmt.Sprintf("%.3g processors", value)
	}
}
