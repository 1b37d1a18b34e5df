// Package diskio has the limits of what a node reads from disks and writes to them, and the form in
// which site files write them.
package diskio

import (
	"math/big"
	"strconv"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/strict"
)

// Limits are limits for each disk of a host. A zero value means no limit.
type Limits struct {
	Read  Rate  `toml:"read" json:"read,omitempty"`   // bytes per second
	Write Rate  `toml:"write" json:"write,omitempty"` // bytes per second
	IOPS  int64 `toml:"iops" json:"iops,omitempty"`   // requests per second, of reading and of writing each
}

// MaxIOPS is the most that version 1 of control groups can limit.
const MaxIOPS = 1<<32 - 2

// String returns the limits for display, such as "read 100MB/s, iops 1000", or "" for none.
func (l Limits) String() string {
	var all []string
	if l.Read != 0 {
		all = append(all, "read "+l.Read.String())
	}
	if l.Write != 0 {
		all = append(all, "write "+l.Write.String())
	}
	if l.IOPS != 0 {
		all = append(all, "iops "+strconv.FormatInt(l.IOPS, 10))
	}
	return strings.Join(all, ", ")
}

// A Rate is a number of bytes per second, written as "100MB/s".
type Rate int64

const (
	minRate Rate = 100_000
	maxRate Rate = 1_000_000_000_000
)

// rateUnits are the units of rates. String uses the decimal ones, the largest first.
var rateUnits = []struct {
	name  string
	bytes int64
}{
	{"TB/s", 1e12}, {"GB/s", 1e9}, {"MB/s", 1e6}, {"kB/s", 1e3}, {"GiB/s", 1 << 30}, {"MiB/s", 1 << 20},
	{"KiB/s", 1 << 10},
}

const decimals = 4 // units of rateUnits that are decimal

// Parse parses a rate with its unit.
func (r *Rate) Parse(value any) *problem.Problem {
	text, ok := value.(string)
	if !ok {
		p := mistake("a rate must be a string with a unit, not %s", strict.Describe(value))
		if n, ok := value.(int64); ok && n > 0 {
			return p.Try(`write "%dMB/s" or "%dkB/s"`, n, n)
		}
		return p.Try(`write "100MB/s"`)
	}
	for _, u := range rateUnits {
		number, ok := strings.CutSuffix(text, u.name)
		if number = strings.TrimSpace(number); !ok || strings.Trim(number, "0123456789.") != "" || len(number) > 20 {
			continue
		}
		n, ok := new(big.Rat).SetString(number)
		if !ok {
			break
		}
		n.Mul(n, new(big.Rat).SetInt64(u.bytes))
		if !n.IsInt() || !n.Num().IsInt64() {
			break
		}
		if bytes := Rate(n.Num().Int64()); bytes >= minRate && bytes <= maxRate {
			*r = bytes
			return nil
		}
		return mistake("%s is not between %v and %v", strict.Describe(text), minRate, maxRate)
	}
	return mistake("%s is not a rate of a disk", strict.Describe(text)).
		Try(`write "100MB/s", "1.5GB/s" or "64MiB/s": bytes per second`)
}

// String returns the rate in the form of a site file, with whole numbers if it can.
func (r Rate) String() string {
	n := int64(r)
	units, decimal := rateUnits[:decimals], n%100_000 == 0 || n%(1<<10) != 0
	if !decimal {
		units = rateUnits[decimals:]
	}
	for _, u := range units {
		if n >= u.bytes && (n%u.bytes == 0 || decimal && n%(u.bytes/1000) == 0) {
			return strconv.FormatFloat(float64(n)/float64(u.bytes), 'f', -1, 64) + u.name
		}
	}
	return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) + "kB/s"
}

// Schema returns the schema of rates.
func (r *Rate) Schema() strict.JSONSchema {
	return strict.JSONSchema{"type": "string", "pattern": `^[0-9.]+ ?(TB|GB|MB|kB|GiB|MiB|KiB)/s$`}
}

func mistake(format string, args ...any) *problem.Problem {
	return problem.New(problem.Mistake, format, args...)
}
