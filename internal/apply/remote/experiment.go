package remote

import (
	"context"
	"errors"
	"io"
	"time"

	"orrery/internal/problem"
	"orrery/internal/transport/rpc"
)

// An Experiment is what a host is asked to measure, by itself and on itself.
type Experiment struct {
	Name     string            `json:"name"`
	Text     []byte            `json:"text"`               // the file
	Only     []string          `json:"only,omitempty"`     // tests to which it is confined; none: all of them
	Rounds   int               `json:"rounds,omitempty"`   // kept, at least; 0: as the file says
	Until    float64           `json:"until,omitempty"`    // the difference that is to be found; 0: as the file says
	Budget   time.Duration     `json:"budget,omitempty"`   // how long rounds may take in all; 0: no bound
	Fresh    bool              `json:"fresh,omitempty"`    // begin anew, even if a run of it was interrupted over there
	Arch     string            `json:"arch"`               // of the programs
	Programs map[string][]byte `json:"programs,omitempty"` // that come with Orrery, and not with its helper
	By       string            `json:"by"`                 // who wants it
}

// A Bench is a machine that does experiments.
type Bench interface {
	// Measure does one, and tells how it gets on: words that only the two ends of it know. What was
	// measured it writes, as packed bundles are, also when the run was ended by its caller.
	Measure(ctx context.Context, x Experiment, tell func(string), to io.Writer) error
}

// endTimeout is how long a host may take to end an experiment that its caller wants no more: its
// nodes are taken down, and what was measured is sent.
var endTimeout = 5 * time.Minute // but in tests

// Measure lets the host do an experiment. When ctx ends, the host is to end the run, and what was
// measured still comes. An error of tell, or of whoever is written to, ends the talk.
func (l *Link) Measure(ctx context.Context, x Experiment, tell func(string) error, to io.Writer) error {
	_, err := experimentMethod.ask(ctx, l, place{}, x, func(_ *rpc.Talk, w *word) error {
		if w.Detail != "" {
			if err := tell(w.Detail); err != nil {
				return err
			}
		}
		if len(w.Bytes) == 0 {
			return nil
		}
		_, err := to.Write(w.Bytes)
		return err
	})
	if m := (*mute)(nil); errors.As(err, &m) && ctx.Err() != nil {
		return problem.New(problem.Interrupted, "interrupted; within %v the host has not said that the run is over",
			endTimeout).At("host " + l.name).Try("orrery ls on that host shows whether orrery-lab is still there")
	}
	return err
}

var experimentMethod = method[Experiment, none]{
	name: "experiment", traits: traits{long: true, displayed: true, stop: &endTimeout},
	answer: func(ctx context.Context, c *received, x Experiment) (none, error) {
		bench, ok := c.helper.machine.(Bench)
		if !ok {
			return none{}, problem.New(problem.Unable, "experiments are not done on this host")
		}
		return none{}, bench.Measure(ctx, x, c.detail, sliced{c.Caller})
	},
}
