// Package traffic has the limits of what passes through an interface of a node, and the forms in
// which site files write them.
package traffic

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"orrery/internal/problem"
	"orrery/internal/strict"
	"orrery/internal/text/humanize"
)

// Limits are the limits of one interface, each in both directions. A zero value means no limit.
// Limits are comparable.
type Limits struct {
	Rate    Rate          `toml:"rate" json:"rate,omitempty"`               // of bits on the wire, headers included
	Burst   int64         `toml:"burst" unit:"size" json:"burst,omitempty"` // bytes at once above the rate, or 0; see BurstBytes
	Latency time.Duration `toml:"latency" json:"latency,omitempty"`         // added to each frame
	Jitter  time.Duration `toml:"jitter" json:"jitter,omitempty"`           // Latency differs by at most this much
	Loss    Loss          `toml:"loss" json:"loss,omitempty"`               // share of frames that are lost
}

// Delays reports whether the limits need netem, which delays and loses frames.
func (l Limits) Delays() bool { return l.Latency > 0 || l.Jitter > 0 || l.Loss > 0 }

// The bounds of what a site file may declare. The kernel counts bytes in a second in 64 bits, and
// the time of a burst in 32 bits of 64 ns.
const (
	MinRate    Rate  = 8_000             // bit/s: a frame of 1,000 bytes in a second
	MaxRate    Rate  = 1_000_000_000_000 // bit/s
	MinBurst   int64 = 2 << 10           // bytes: more than a frame of 1,500 bytes
	MaxBurst   int64 = 256 << 20         // bytes
	MaxLatency       = 100 * time.Second
)

// minDefaultBurst is the least default burst: a few frames.
const minDefaultBurst = 16 << 10

// BurstBytes returns the burst that is in force: as declared, or what passes in a millisecond.
func (l Limits) BurstBytes() int64 {
	if l.Burst > 0 {
		return l.Burst
	}
	return max(minDefaultBurst, int64(l.Rate)/8/1000)
}

// QueueBytes returns how many bytes may wait because of the rate: those of 50 ms. More would make
// every connection slow, and fewer would lose frames of connections that are not. A node must not
// fill the host's memory with what waits.
func (l Limits) QueueBytes() int64 {
	const (
		fewest = 256 << 10 // four packets that a card would have divided
		most   = 32 << 20
	)
	return min(max(fewest, int64(l.Rate)/8/20), most)
}

// String returns the limits for display, such as "rate 1Gbit/s, latency 5ms", or "" for none.
func (l Limits) String() string {
	var all []string
	add := func(set bool, name, value string) {
		if set {
			all = append(all, name+" "+value)
		}
	}
	add(l.Rate != 0, "rate", l.Rate.String())
	add(l.Burst != 0, "burst", humanize.Bytes(l.Burst))
	add(l.Latency != 0, "latency", l.Latency.String())
	add(l.Jitter != 0, "jitter", l.Jitter.String())
	add(l.Loss != 0, "loss", l.Loss.String())
	return strings.Join(all, ", ")
}

// A Rate is a number of bits per second, written as "100Mbit/s".
type Rate int64

// rateUnits are the units of rates, the largest first.
var rateUnits = []struct {
	name string
	bits int64
}{{"Tbit/s", 1e12}, {"Gbit/s", 1e9}, {"Mbit/s", 1e6}, {"kbit/s", 1e3}, {"bit/s", 1}}

// Parse parses a rate with its unit.
func (r *Rate) Parse(value any) *problem.Problem {
	text, ok := value.(string)
	if !ok {
		p := mistake("a rate must be a string with a unit, not %s", strict.Describe(value))
		if n, ok := value.(int64); ok && n > 0 {
			return p.Try(`write "%dMbit/s", "%dkbit/s" or "%dbit/s"`, n, n, n)
		}
		return p.Try(`write "1Gbit/s" or "50Mbit/s"`)
	}
	for _, u := range rateUnits {
		number, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		bits, ok := decimal(strings.TrimSpace(number), u.bits)
		if !ok {
			break
		}
		if bits < int64(MinRate) || bits > int64(MaxRate) {
			return mistake("%s is not between %v and %v", strict.Describe(text), MinRate, MaxRate)
		}
		*r = Rate(bits)
		return nil
	}
	return mistake("%s is not a rate", strict.Describe(text)).
		Try(`write "1Gbit/s", "50Mbit/s" or "500kbit/s": bits, and decimal multiples of them`)
}

// decimal returns a positive decimal number times a factor, or false if that is not a whole number.
func decimal(text string, factor int64) (int64, bool) {
	if text == "" || len(text) > 20 || strings.Trim(text, "0123456789.") != "" {
		return 0, false
	}
	n, ok := new(big.Rat).SetString(text)
	if !ok {
		return 0, false
	}
	n.Mul(n, new(big.Rat).SetInt64(factor))
	if !n.IsInt() || !n.Num().IsInt64() {
		return 0, false
	}
	return n.Num().Int64(), true
}

// String returns the rate in the form of a site file.
func (r Rate) String() string {
	for _, u := range rateUnits {
		if bits := int64(r); bits >= u.bits && bits%(max(u.bits/1000, 1)) == 0 {
			return strconv.FormatFloat(float64(bits)/float64(u.bits), 'f', -1, 64) + u.name
		}
	}
	return strconv.FormatInt(int64(r), 10) + "bit/s"
}

// Schema returns the schema of rates.
func (r *Rate) Schema() strict.JSONSchema {
	return strict.JSONSchema{"type": "string", "pattern": `^[0-9.]+ ?[TGMk]?bit/s$`}
}

// A Loss is a share of frames in millionths, written as "0.1%".
type Loss int64

// maxLoss is the share of all frames.
const maxLoss Loss = 1_000_000

// Parse parses a percentage.
func (l *Loss) Parse(value any) *problem.Problem {
	text, ok := value.(string)
	if !ok {
		return mistake("a share must be a percentage in quotation marks, not %s", strict.Describe(value)).
			Try(`write "0.1%%"`)
	}
	number, ok := strings.CutSuffix(text, "%")
	millionths, whole := decimal(strings.TrimSpace(number), int64(maxLoss)/100)
	if !ok || !whole || millionths == 0 || Loss(millionths) > maxLoss {
		return mistake("%s is not a percentage of frames", strict.Describe(text)).
			Try(`write "0.0001%%" to "100%%", with at most 4 decimals`)
	}
	*l = Loss(millionths)
	return nil
}

// String returns the share in the form of a site file.
func (l Loss) String() string {
	return strconv.FormatFloat(float64(l)/float64(maxLoss/100), 'f', -1, 64) + "%"
}

// Schema returns the schema of shares.
func (l *Loss) Schema() strict.JSONSchema {
	return strict.JSONSchema{"type": "string", "pattern": `^[0-9.]+ ?%$`}
}

// Of32 returns the share as the kernel has it: of 2^32.
func (l Loss) Of32() uint32 {
	return uint32(math.Round(float64(l) / float64(maxLoss) * math.MaxUint32))
}

// LossOf32 returns the share for the kernel's form of it.
func LossOf32(of uint32) Loss {
	return Loss(math.Round(float64(of) / math.MaxUint32 * float64(maxLoss)))
}

func mistake(format string, args ...any) *problem.Problem {
	return problem.New(problem.Mistake, format, args...)
}
