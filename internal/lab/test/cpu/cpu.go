// Package cpu measures the processor in a place: stress-ng's own loops, and a score that is their
// geometric mean.
//
// It follows the CPU tests of INFN, which gave the score of one and of eight copies of a benchmark
// and its wall clock on virtual and on physical machines. They ran HEP-SPEC06, which stands on SPEC
// CPU2006 and needs its licence. This score is not HEP-SPEC06, has no relation to it that one could
// reckon with, and must not be compared with figures of it: a "bogo operation" is one turn of a
// loop of stress-ng, and means the same thing only for the same method in the same version. Ratios
// of settings in one run are what it is good for.
package cpu

import (
	"sync"
	"time"

	"orrery/internal/lab/test"
)

// options are the keys of the test in an experiment.
type options struct {
	Methods []string `toml:"methods"` // of stress-ng --cpu-method
	Seconds int      `toml:"seconds"` // of each method; 0: rates come from the fixed work
	Work    int      `toml:"work"`    // bogo operations of each method, whose wall clock is a figure; 0: no fixed work
	Clock   string   `toml:"clock"`   // by which rates are: real, or cpu, which is user and system time
}

// defaults are methods with integers, floating point, memory and branches; all of them are in
// stress-ng 0.15.06, as Debian 12 has it. The work takes a method about a quarter of a second on a
// core of 2023.
func defaults() options {
	return options{
		Methods: []string{"int64", "float", "double", "fft", "matrixprod", "prime", "crc16", "queens"},
		Work:    500, Clock: realTime,
	}
}

// The clocks.
const (
	realTime = "real"
	cpuTime  = "cpu"
)

// The figures beside those of methods.
const (
	// named for what it is: "score" would be taken for HEP-SPEC06, in whose place it stands
	score = "geometric mean of stress-ng"
	wall  = "wall clock"
)

// cpu is the test.
type cpu struct {
	options

	mutex   sync.Mutex
	version string // of the first place that was checked
	first   string // its name
}

// New makes the test from its options.
func New(decode func(options any) error) (test.Test, error) {
	c := &cpu{options: defaults()}
	if err := test.Read(decode, &c.options, c.check); err != nil {
		return nil, err
	}
	return c, nil
}

func (o *options) check(wrong test.Wrong) {
	if len(o.Methods) == 0 {
		wrong(`write methods = ["int64", "matrixprod"]`, "methods: there is none")
	}
	for _, m := range o.Methods {
		if m == "" || m == "all" || m == "which" {
			wrong("name each one; stress-ng --cpu 1 --cpu-method which lists them", "methods: %q is not a method", m)
		}
	}
	test.Twice("methods", o.Methods, wrong)
	if o.Seconds < 0 || o.Seconds > 86400 {
		wrong("stress-ng takes whole seconds; 0: rates come from the fixed work", "seconds = %d", o.Seconds)
	}
	if o.Work < 0 {
		wrong("write a number of bogo operations; 0: no fixed work", "work = %d", o.Work)
	}
	if o.Seconds == 0 && o.Work == 0 {
		wrong("give seconds, or work, or both", "there is nothing to measure")
	}
	if o.Clock != realTime && o.Clock != cpuTime {
		wrong(`write "real" or "cpu"`, "clock = %q", o.Clock)
	}
}

// Needs names the program.
func (c *cpu) Needs() test.Needs {
	return test.Needs{Packages: []string{"stress-ng"}, Runs: []string{"stress-ng"}}
}

// Figures are the score, the wall clock of the fixed work, and the rate of each method.
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

// Time counts 2000 operations a second for the fixed work.
func (c *cpu) Time() time.Duration {
	each := time.Duration(c.Seconds)*time.Second + time.Duration(c.Work)*time.Second/2000 + 50*time.Millisecond
	return time.Duration(len(c.Methods)) * each
}
