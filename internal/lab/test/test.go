// Package test defines what a test of the lab is.
//
// It defines what a test needs, which figures it returns, and how it measures them in a place. Each
// kind of test is a package below, and package lab/experiment lists them.
package test

import (
	"context"
	"time"

	"orrery/internal/lab/place"
)

// A Test measures something in a place. It is created once per experiment and used by many trials,
// one after another or, with several copies, concurrently.
type Test interface {
	// Needs returns what must exist before the first round.
	Needs() Needs
	// Figures returns the rows that the test adds to the table, in order. A sample of any other
	// figure is a bug of the test.
	Figures() []Figure
	// Check finds problems in a place that would make every trial fail, such as a missing program,
	// a small disk or a port in use. It is called before the first round, once for each place, and
	// may create files that trials read.
	Check(ctx context.Context, t *Trial) error
	// Run runs one trial.
	Run(ctx context.Context, t *Trial) (Result, error)
	// Time returns about how long a trial takes, for the display of the remaining time.
	Time() time.Duration
}

// Needs is what a test must have in every place. It is installed as a role layer, so that all
// places run the same binaries.
type Needs struct {
	Packages []string  // Debian packages
	Programs []Program // compiled into the layer
	Tools    []string  // programs that come with Orrery: place.Orrery, place.Micro
	Runs     []string  // programs of packages that trials run; the bundle has their digests for each setting
	Far      bool      // a second end of the traffic, outside the setting
	Disk     int64     // bytes in the work directory
}

// A Program is compiled in the layer.
type Program struct {
	Name   string // installed as /usr/local/bin/NAME
	Source []byte // of its only source file
	// The command, with SOURCE and PROGRAM in place of the two files, such as mpicc -O2 -o PROGRAM
	// SOURCE.
	Compile []string
}

// A Figure is a row of the table.
type Figure struct {
	Name   string // unique within the test, such as "tcp forward 1 stream"
	Unit   string // SI unit of the samples: "bit/s", "s", "B/s", "1/s", "1" (a ratio)
	Better Direction
	// Aggregate is how the values of concurrent copies are combined.
	Aggregate Aggregate
}

// Direction is the direction in which a figure is better.
type Direction string

// The directions.
const (
	More    Direction = "more"
	Less    Direction = "less"
	Neither Direction = "neither" // shown, not judged
)

// Aggregate is how the values of copies are combined.
type Aggregate string

// The kinds of aggregation.
const (
	Sum  Aggregate = "sum"  // rates
	Mean Aggregate = "mean" // times
)

// A Trial is one run of a test in one place.
type Trial struct {
	Round int // 0 is a rehearsal that does not count
	Near  *place.Place
	Far   *place.Place // nil unless the test needs one
	Copy  int          // from 0; copies must not use the same ports or directories
	Of    int          // number of concurrent copies
	// Barrier waits until all copies have called it. It can be called repeatedly. Measure calls it
	// before the program begins.
	Barrier func(ctx context.Context) error
	// Keep stores the raw output of a tool in the bundle.
	Keep func(name string, content []byte) error
}

// A Result is the result of a trial.
type Result struct {
	Samples []Sample
	Labels  []Label
	Moved   Moved
	Series  []Series
	Detail  any // stored in the bundle as JSON beside the samples, such as the curve of a search, or nil
}

// Moved is how many bytes a test read from disks and wrote to them, or 0 if it does not know.
type Moved struct {
	Read    int64 `json:"read,omitempty"`
	Written int64 `json:"written,omitempty"`
}

// Add returns the sum of m and o.
func (m Moved) Add(o Moved) Moved { return Moved{m.Read + o.Read, m.Written + o.Written} }

// A Sample is one measured number.
type Sample struct {
	Figure string  `json:"figure"`
	Value  float64 `json:"value"`
}

// A Series is a figure over the time of one trial, from the start of its program. An event during
// the trial, such as a server being switched off, is visible in the series and not in the figure.
type Series struct {
	Figure string    `json:"figure"`
	Step   float64   `json:"step"`   // seconds from one value to the next
	Values []float64 `json:"values"` // each value is for the step that ends there
}

// A Label explains why a figure is suspect.
type Label struct {
	Name  string `json:"name"`  // short and fixed, such as "governor"
	Why   string `json:"why"`   // what was observed: numbers, names
	Cure  string `json:"cure"`  // what to do
	Where string `json:"where"` // prefix of the names of the affected figures, or "" for all
}
