package remote

import (
	"encoding/json"
	"errors"
	"testing"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// TestFault: an error is the same on the other side; and whatever a helper says is wrong, it is no success.
func TestFault(t *testing.T) {
	for text, want := range map[string]int{
		`{"problems":[{"kind":5,"what":"held"}]}`:                           int(problem.Locked),
		`{"problems":[{"kind":130,"what":"Ctrl-C"}]}`:                       int(problem.Interrupted),
		`{"problems":[{"kind":0,"what":"fine"}]}`:                           int(problem.Failed),
		`{"problems":[{"kind":256,"what":"fine"}]}`:                         int(problem.Failed),
		`{"problems":[{"kind":-1,"what":"fine"}]}`:                          int(problem.Failed),
		`{"problems":[{"kind":10,"what":"fine"},{"kind":0,"what":"fine"}]}`: int(problem.Failed),
		`{"problems":[]}`: int(problem.Failed),
		`{}`:              int(problem.Failed),
	} {
		var f fault
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			t.Fatal(err)
		}
		if got := problem.Exit(f.err()); got != want {
			t.Errorf("%s: exit status %d, want %d", text, got, want)
		}
	}
	for _, err := range []*host.RunError{{Place: "db", Command: []string{"false"}, Status: 1}, {Place: "db", Command: []string{"x"}, Status: -1, Err: errors.New("killed")}} {
		got := faultOf(err).err()
		var run *host.RunError
		if !errors.As(got, &run) || got.Error() != err.Error() || (run.Err == nil) != (err.Err == nil) {
			t.Errorf("%v became %v", err, got)
		}
	}
}
