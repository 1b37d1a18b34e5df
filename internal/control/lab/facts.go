package lab

import (
	"context"

	"orrery/internal/lab/experiment"
	"orrery/internal/lab/facts"
	"orrery/internal/lab/run"
	"orrery/internal/lab/setting"
	"orrery/internal/problem"
)

// hostFacts is the content of facts.json in a bundle: the host, and the programs that were measured.
type hostFacts struct {
	facts.Facts
	Programs []program `json:"programs"`
	Emulated []string  `json:"emulated,omitempty"` // settings whose processors were emulated in software
}

// A program is a program with the SHA-256 of its file, by setting. If these differ, the run is not
// started.
type program struct {
	Name    string            `json:"name"`
	Digests map[string]string `json:"digests"`
}

// facts collects what is known before the first round.
func (s *labSite) facts(ctx context.Context, g *setting.Places) (hostFacts, error) {
	k := hostFacts{}
	var err error
	if k.Facts, err = facts.Collect(ctx, facts.Options{Dir: s.work}); err != nil {
		return k, err
	}
	for _, one := range s.Experiment.Settings {
		if one.Emulated {
			k.Emulated = append(k.Emulated, one.Name)
		}
	}
	for _, name := range s.Needs.Runs {
		p := program{name, map[string]string{}}
		for _, setting := range run.Settings(s.Experiment) { // the bare host first
			if p.Digests[setting], err = g.Near[setting][0].Digest(ctx, name); err != nil {
				return k, err
			}
			if p.Digests[setting] != p.Digests[experiment.Bare] {
				return k, problem.New(problem.Surprise, "%s is not the same file in setting %s as on the bare host", name, setting).
					Try("run it again with --fresh; if the error persists, report it")
			}
		}
		k.Programs = append(k.Programs, p)
	}
	return k, nil
}
