package lab

import (
	"cmp"
	"encoding/json"
	"time"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/run"
	"orrery/internal/lab/setting"
	"orrery/internal/problem"
	"orrery/internal/strict/jsonlimit"
)

// A recorder stores trials and keeps the head of the bundle up to date.
type recorder struct {
	*bundle.Writer
	head bundle.Manifest
}

// RoundDone records how many rounds are complete.
func (b *recorder) RoundDone(complete int) error {
	b.head.Rounds = max(b.head.Rounds, complete)
	return b.WriteManifest(b.head)
}

// end records how the run ended.
func (b *recorder) end(err error) error {
	if b.head.State = bundle.Done; err != nil {
		b.head.State = bundle.Interrupted
	}
	b.head.Ended = time.Now()
	return b.WriteManifest(b.head)
}

// facts writes the facts of the host, unless the run was resumed: its rounds were measured under
// the former facts. It returns an error if the programs have changed since.
func (b *recorder) facts(now hostFacts, former json.RawMessage) error {
	if former == nil {
		return b.WriteFacts(now)
	}
	var then hostFacts
	if err := jsonlimit.Unmarshal(former, &then); err != nil {
		return b.WriteFacts(now)
	}
	for _, p := range now.Programs {
		for _, q := range then.Programs {
			current, previous := p.Digests[experiment.Bare], q.Digests[experiment.Bare]
			if p.Name == q.Name && current != previous {
				return problem.New(problem.Surprise,
					"%s has changed since the earlier rounds: SHA-256 %.12s then, %.12s now", p.Name, previous, current).
					At(b.Dir()).Try("orrery lab run --fresh starts over")
			}
		}
	}
	return nil
}

// settings returns the settings of an experiment.
func settings(e *experiment.Experiment) []bundle.Setting {
	all := []bundle.Setting{
		{Name: experiment.Bare, About: "this host, with the same binaries as the nodes"},
		{Name: experiment.Control, About: "the same again, to compare identical settings",
			Again: experiment.Bare},
	}
	stand := setting.New(e, "", nil)
	for _, s := range e.Settings {
		entry := bundle.Setting{Name: s.Name, About: setting.Describe(s), Emulated: s.Emulated, Again: s.Again,
			Missing: s.Missing}
		if s.Again != "" {
			entry.About = s.Again + " again, to compare a container with itself"
		}
		if s.Missing == "" {
			entry.Nodes = stand.Nodes(s)
		}
		all = append(all, entry)
	}
	return all
}

// tests returns the tests of an experiment, one for each number of copies.
func tests(e *experiment.Experiment) []bundle.Test {
	var all []bundle.Test
	for _, u := range run.Units(e) {
		all = append(all, bundle.Test{Name: u.Title, Kind: u.Kind, Copies: u.Copies, Figures: u.Figures(),
			Source: cmp.Or(u.Source, e.Source)})
	}
	return all
}
