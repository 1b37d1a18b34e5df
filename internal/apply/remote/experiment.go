package remote

import (
	"context"
	"errors"
	"io"
	"time"

	"orrery/internal/problem"
	"orrery/internal/transport/rpc"
)

// An Experiment is a measurement that a host does on its own nodes.
type Experiment struct {
	Name   string        `json:"name"`
	Text   []byte        `json:"text"`             // the experiment file
	Only   []string      `json:"only,omitempty"`   // the tests to run, or none for all
	Rounds int           `json:"rounds,omitempty"` // minimum number of rounds, or 0 for the number in the file
	Until  float64       `json:"until,omitempty"`  // the difference to detect, or 0 for the value in the file
	Budget time.Duration `json:"budget,omitempty"` // total time for the rounds, or 0 for no limit
	// start again even if a former run on the host was interrupted
	Fresh    bool              `json:"fresh,omitempty"`
	Arch     string            `json:"arch"`               // of the programs
	Programs map[string][]byte `json:"programs,omitempty"` // programs that come with Orrery, but not with its helper
	By       string            `json:"by"`                 // the user who requests it
}

// An ExperimentRunner is a machine that can run experiments.
type ExperimentRunner interface {
	// Measure runs an experiment and reports its progress by tell, in words that only the two ends
	// know. It writes the results to the writer as a packed bundle, even if the caller has stopped
	// the run.
	Measure(ctx context.Context, x Experiment, tell func(string), to io.Writer) error
}

// endTimeout limits how long a host may take to end an experiment that its caller has cancelled. It
// has to remove its nodes and send what was measured.
var endTimeout = 5 * time.Minute // variable, so that tests can change it

// Measure makes the host run an experiment. When ctx ends, the host must stop the run, and Measure
// still receives what was measured. An error of tell or of the writer ends the call.
func (l *Link) Measure(ctx context.Context, x Experiment, tell func(string) error, to io.Writer) error {
	_, err := experimentMethod.ask(ctx, l, callTarget{}, x, func(_ *rpc.Stream, w *response) error {
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
	if m := (*noAnswerError)(nil); errors.As(err, &m) && ctx.Err() != nil {
		return problem.New(problem.Interrupted, "interrupted; the host did not report the end of the run within %v",
			endTimeout).At("host " + l.name).Try("orrery ls on that host shows whether orrery-lab is still there")
	}
	return err
}

var experimentMethod = method[Experiment, none]{
	name: "experiment", callOptions: callOptions{long: true, displayed: true, stop: &endTimeout},
	answer: func(ctx context.Context, c *serverCall, x Experiment) (none, error) {
		bench, ok := c.helper.machine.(ExperimentRunner)
		if !ok {
			return none{}, problem.New(problem.Unable, "this host does not run experiments")
		}
		return none{}, bench.Measure(ctx, x, c.detail, slicingWriter{c.ServerStream})
	},
}
