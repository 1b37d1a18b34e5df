package cli

import (
	"context"

	"orrery/internal/lab/experiment"
	"orrery/internal/lab/facts"
	"orrery/internal/lab/run"
	"orrery/internal/lab/setting"
	"orrery/internal/problem"
)

// labFacts is facts.json of a bundle: the host, and the programs that were measured with.
type labFacts struct {
	facts.Facts
	Programs []labProgram `json:"programs"`
}

// A labProgram is a program with the SHA-256 of its file, by setting. They are all the same, or the run is not begun.
type labProgram struct {
	Name    string            `json:"name"`
	Digests map[string]string `json:"digests"`
}

// facts collects what is known before the first round.
func (s *labStand) facts(ctx context.Context, g *setting.Ground) (labFacts, error) {
	known := labFacts{}
	var err error
	if known.Facts, err = facts.Collect(ctx, facts.Options{Dir: s.work}); err != nil {
		return known, err
	}
	for _, name := range s.Needs.Runs {
		p := labProgram{name, map[string]string{}}
		for _, setting := range run.Settings(s.Experiment) { // the bare host first
			if p.Digests[setting], err = g.Near[setting][0].Digest(ctx, name); err != nil {
				return known, err
			}
			if p.Digests[setting] != p.Digests[experiment.Bare] {
				return known, problem.New(problem.Surprise, "%s is another file in setting %s than on the bare host", name, setting).
					Try("run it again with --fresh; if it is so still, report it")
			}
		}
		known.Programs = append(known.Programs, p)
	}
	return known, nil
}
