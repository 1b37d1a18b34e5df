// Package test is the contract of the lab's tests: what a test needs, which figures it returns, and
// how it measures them in a place. Each kind of test is a folder below, and package test/all lists
// them.
package test

import (
	"context"
	"time"

	"orrery/internal/lab/place"
)

// A Test measures something in a place. It is made once for an experiment and used by many trials,
// one after another, or, with several copies, at the same time.
type Test interface {
	// Needs says what must be there before the first round.
	Needs() Needs
	// Figures are the rows that the test adds to the table, in order. Samples of others are an error of the test.
	Figures() []Figure
	// Check finds in a place what would let every trial fail, such as a program that is missing, a
	// disk too small or a port taken. It is called before the first round, once for each place, and
	// may lay out what trials read.
	Check(ctx context.Context, t *Trial) error
	// Run does one trial.
	Run(ctx context.Context, t *Trial) (Result, error)
	// Time is about how long a trial takes, for what is shown of the time that remains.
	Time() time.Duration
}

// Needs are what a test must have in every place; it comes as a role layer, so that all places run
// the same binaries.
type Needs struct {
	Packages []string  // of Debian
	Programs []Program // compiled into the layer
	Tools    []string  // that come with Orrery: place.Orrery, place.Micro
	Runs     []string  // programs of packages that trials run: the bundle has their digests in each setting
	Far      bool      // a second end of the traffic, outside the setting
	Disk     int64     // bytes in the work directory
}

// A Program is compiled in the layer.
type Program struct {
	Name   string // it becomes /usr/local/bin/NAME
	Source []byte // of one file
	// the command, in which SOURCE and PROGRAM stand for the two files, such as mpicc -O2 -o PROGRAM
	// SOURCE
	Compile []string
}

// A Figure is a row of the table.
type Figure struct {
	Name   string // such as "tcp forward 1 stream": unique within the test
	Unit   string // SI, of the value as sampled: "bit/s", "s", "B/s", "1/s", "1" (a ratio)
	Better Better
	// Aggregate says how the values of copies that ran at once make one.
	Aggregate Aggregate
}

// Better says which way a figure is better.
type Better string

// The ways.
const (
	More    Better = "more"
	Less    Better = "less"
	Neither Better = "neither" // told, not judged
)

// Aggregate says how values of copies are put together.
type Aggregate string

// The ways.
const (
	Sum  Aggregate = "sum"  // rates
	Mean Aggregate = "mean" // times
)

// A Trial is one run of a test in one place.
type Trial struct {
	Round int // 0 is a rehearsal and does not count
	Near  *place.Place
	Far   *place.Place // nil unless the test needs one
	Copy  int          // from 0; ports and directories must not clash between copies
	Of    int          // copies that run at once
	// Barrier returns when all copies have come to it, each time anew; Measure calls it before a program begins.
	Barrier func(ctx context.Context) error
	// Keep puts a tool's raw output into the bundle.
	Keep func(name string, content []byte) error
}

// A Result is what a trial gave.
type Result struct {
	Samples []Sample
	Labels  []Label
	Moved   Moved
	Series  []Series
	Detail  any // kept in the bundle as JSON beside the samples, such as the curve of a search; nil: none
}

// Moved is what a test says that it read of disks and wrote to them, in bytes; 0: it does not say.
type Moved struct {
	Read    int64 `json:"read,omitempty"`
	Written int64 `json:"written,omitempty"`
}

// Add returns the sum of two.
func (m Moved) Add(o Moved) Moved { return Moved{m.Read + o.Read, m.Written + o.Written} }

// A Sample is one measured number.
type Sample struct {
	Figure string  `json:"figure"`
	Value  float64 `json:"value"`
}

// A Series is a figure over the time of one trial, from when its program began. An event in a
// trial, such as a server that is switched off, is seen there and not in the figure.
type Series struct {
	Figure string    `json:"figure"`
	Step   float64   `json:"step"`   // seconds from one value to the next
	Values []float64 `json:"values"` // each of the step that ends there
}

// A Label says why a figure is suspect.
type Label struct {
	Name  string `json:"name"`  // short and fixed, such as "governor"
	Why   string `json:"why"`   // what was seen: numbers, names
	Cure  string `json:"cure"`  // what to do
	Where string `json:"where"` // the figures that it concerns: the beginning of their names; "": all
}
