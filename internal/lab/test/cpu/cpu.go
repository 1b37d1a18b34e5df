// Package cpu measures the processor in a place with the loops of stress-ng.
//
// The score is the geometric mean of the loops' rates. It follows the CPU tests of INFN, which
// reported the score of one and of eight copies of a benchmark, and its wall-clock time, on virtual
// and on physical machines. They ran HEP-SPEC06, which is based on SPEC CPU2006 and needs a licence
// for it. This score is not HEP-SPEC06 and cannot be converted to it or compared with its figures.
// A "bogo operation" is one iteration of a stress-ng loop. It means the same thing only for the
// same method in the same version. The score is meant for ratios between the settings of one run.
package cpu

import (
	"sync"
	"time"

	"orrery/internal/lab/test"
)

// options are the keys of the test in an experiment. docs/lab.md has the comments of the fields.
type options struct {
	// Default `["int64", "float", "double", "fft", "matrixprod", "prime", "crc16", "queens"]`: as
	// `stress-ng --cpu-method which` lists them
	Methods []string `toml:"methods"`
	// Default `0`: run each method that long for its rate; 0: rates come from the fixed work
	Seconds int `toml:"seconds"`
	// Default `500`: operations of each method, timed by the wall clock; 0: none
	Work int `toml:"work"`
	// Default `"real"`: for rates; `"cpu"`: user and system time
	Clock string `toml:"clock"`
}

// defaults returns methods for integers, floating point, memory and branches. stress-ng 0.15.06 of
// Debian 12 has all of them. The fixed work takes about a quarter of a second per method on a core
// of 2023.
func defaults() options {
	return options{
		Methods: []string{"int64", "float", "double", "fft", "matrixprod", "prime", "crc16", "queens"},
		Work:    500, Clock: realTime,
	}
}

// The clocks for rates.
const (
	realTime = "real"
	cpuTime  = "cpu"
)

// The names of the figures other than those of methods.
const (
	// named after what it is: "score" could be mistaken for HEP-SPEC06, which it replaces
	score = "geometric mean of stress-ng"
	wall  = "wall clock"
)

// cpu is the test of this kind.
type cpu struct {
	options

	mutex   sync.Mutex
	version string // of the first place that was checked
	first   string // the name of that place
}

// New creates the test from its options.
func New(decode func(options any) error) (test.Test, error) {
	c := &cpu{options: defaults()}
	if err := test.Read(decode, &c.options, c.check); err != nil {
		return nil, err
	}
	return c, nil
}

func (o *options) check(wrong test.MistakeFunc) {
	if len(o.Methods) == 0 {
		wrong(`write methods = ["int64", "matrixprod"]`, "methods is empty")
	}
	for _, m := range o.Methods {
		if m == "" || m == "all" || m == "which" {
			wrong("name each method; see stress-ng --cpu 1 --cpu-method which", "methods: %q is not a single method", m)
		}
	}
	test.CheckDuplicates("methods", o.Methods, wrong)
	if o.Seconds < 0 || o.Seconds > 86400 {
		wrong("write whole seconds, or 0 to compute rates from the fixed work", "seconds = %d", o.Seconds)
	}
	if o.Work < 0 {
		wrong("write a number of bogo operations, or 0 for no fixed work", "work = %d", o.Work)
	}
	if o.Seconds == 0 && o.Work == 0 {
		wrong("set seconds, work or both", "there is nothing to measure")
	}
	if o.Clock != realTime && o.Clock != cpuTime {
		wrong(`write "real" or "cpu"`, "clock = %q", o.Clock)
	}
}

// Needs returns the package that has stress-ng.
func (c *cpu) Needs() test.Needs {
	return test.Needs{Packages: []string{"stress-ng"}, Runs: []string{"stress-ng"}}
}

// Figures returns the score, the wall-clock time of the fixed work, and the rate of each method.
func (c *cpu) Figures() []test.Figure {
	all := []test.Figure{{Name: score, Unit: "1/s", Better: test.More, Aggregate: test.Sum}}
	if c.Work > 0 {
		all = append(all, test.Figure{Name: wall, Unit: "s", Better: test.Less, Aggregate: test.Mean})
	}
	for _, m := range c.Methods {
		all = append(all, test.Figure{Name: m, Unit: "1/s", Better: test.More, Aggregate: test.Sum})
	}
	return all
}

// Time assumes 2000 operations a second for the fixed work.
func (c *cpu) Time() time.Duration {
	each := time.Duration(c.Seconds)*time.Second + time.Duration(c.Work)*time.Second/2000 + 50*time.Millisecond
	return time.Duration(len(c.Methods)) * each
}
