package labverb

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/control/lab"
	"orrery/internal/lab/experiment"
	"orrery/internal/problem"
)

// TestGoal: valid and invalid values of the flags.
func TestGoal(t *testing.T) {
	for line, want := range map[string]*lab.Goal{
		"": {}, "--rounds=20": {Keep: 20}, "--until=10%": {Until: 0.1}, "--until=7.5": {Until: 0.075},
		"--time=30m": {Budget: 30 * time.Minute},
		"--rounds=0": nil, "--rounds=4": nil, "--until=5%": nil, "--until=x": nil, "--until=NaN": nil, "--until=-10%": nil,
		"--until=200%": nil, "--time=-1s": nil, "--repeat=0": nil,
	} {
		c := &cobra.Command{}
		f := addGoal(c)
		if line != "" {
			if err := c.ParseFlags([]string{line}); err != nil {
				t.Fatal(err)
			}
		}
		got, err := f.parse()
		switch {
		case want == nil && problem.ExitCode(err) != int(problem.Usage):
			t.Errorf("%s: %+v, %v", line, got, err)
		case want != nil && (err != nil || got != *want):
			t.Errorf("%s: %+v, %v", line, got, err)
		}
	}
}

// TestRun: each run has a bundle of its own and the original experiment. The first run that fails
// is the last.
func TestRun(t *testing.T) {
	c := &cobra.Command{}
	f := addGoal(c)
	if err := c.ParseFlags([]string{"--repeat=3"}); err != nil {
		t.Fatal(err)
	}
	var to []string
	run := func(o lab.Options) (*lab.StoredReport, error) {
		if o.Experiment.Rounds != 10 {
			t.Errorf("%d rounds: it is another experiment", o.Experiment.Rounds)
		}
		o.Experiment.Rounds = 99
		if to = append(to, o.To); len(to) == 5 {
			return nil, errors.New("no room")
		}
		return &lab.StoredReport{Dir: o.To}, nil
	}
	o := lab.Options{Experiment: &experiment.Experiment{Rounds: 10}, To: "/srv/x"}
	var out bytes.Buffer
	if err := f.runRepeatedly(&out, o, run); err != nil ||
		!strings.Contains(out.String(), "orrery lab compare /srv/x-1 /srv/x-2 /srv/x-3 -- ") ||
		!slices.Equal(to, []string{"/srv/x-1", "/srv/x-2", "/srv/x-3"}) {
		t.Errorf("%v, %q, %v", to, out.String(), err)
	}
	if err := f.runRepeatedly(&out, o, run); err == nil || len(to) != 5 {
		t.Errorf("%v, %v", to, err)
	}
}
