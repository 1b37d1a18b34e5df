package apply

import (
	"testing"

	"orrery/internal/observe"
	"orrery/internal/problem"
)

// TestRecordsChange: records that another process changes between the reading of two hosts do not
// contradict each other. Records that stay as they are do.
func TestRecordsChange(t *testing.T) {
	both := map[string]int{"a": 6}
	trial := observe.Releases{Active: both, Trial: &observe.Trial{Release: 6, Back: map[string]int{"a": 5}}}.
		SuccessorOf(observe.Releases{})
	ended := trial
	ended.Trial, ended.Ended = nil, &observe.TrialEnd{Release: 6, Result: observe.Confirmed, Settled: true}
	ended = ended.SuccessorOf(trial)

	first, second := &stub{releases: trial, changed: &ended, live: 6}, &stub{releases: ended}
	r, err := fleetOf(first, second).Records().Read(t.Context())
	if err != nil || r.State() != ended.State() || first.reads != 2 {
		t.Errorf("%+v, %v after %d reads", r, err, first.reads)
	}
	first, second = &stub{releases: trial, live: 6}, &stub{releases: ended}
	if r, err = fleetOf(first, second).Records().Read(t.Context()); !problem.Is(err, problem.Surprise) ||
		first.reads != 2 {
		t.Errorf("%+v, %v after %d reads", r, err, first.reads)
	}
	// A host that never returns the same record twice does not keep the caller waiting.
	first, second = &stub{releases: trial, live: 6, restless: true}, &stub{releases: ended}
	if r, err = fleetOf(first, second).Records().Read(t.Context()); !problem.Is(err, problem.Surprise) ||
		first.reads != maxReads {
		t.Errorf("%+v, %v after %d reads", r, err, first.reads)
	}
}
