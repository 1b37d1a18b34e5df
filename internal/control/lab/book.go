package lab

import (
	"cmp"
	"time"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/run"
	"orrery/internal/lab/setting"
)

// A book keeps trials, and the head of the bundle up to date.
type book struct {
	*bundle.Writer
	head bundle.Head
}

// Round notes that so many rounds are complete.
func (b *book) Round(complete int) error {
	b.head.Rounds = max(b.head.Rounds, complete)
	return b.Save(b.head)
}

// end notes how the run ended.
func (b *book) end(err error) error {
	if b.head.State = bundle.Done; err != nil {
		b.head.State = bundle.Interrupted
	}
	b.head.Ended = time.Now()
	return b.Save(b.head)
}

// settings tells the settings of an experiment.
func settings(e *experiment.Experiment) []bundle.Setting {
	all := []bundle.Setting{
		{Name: experiment.Bare, About: "this host, with the same binaries as the nodes"},
		{Name: experiment.Control, About: "the same once more: what a comparison of the same with the same gives", Again: experiment.Bare},
	}
	stand := setting.New(e, "", nil)
	for _, s := range e.Settings {
		is := bundle.Setting{Name: s.Name, About: setting.About(s), Emulated: s.Emulated, Again: s.Again, Missing: s.Missing}
		if s.Again != "" {
			is.About = s.Again + " once more: what a container differs by from itself"
		}
		if s.Missing == "" {
			is.Nodes = stand.Nodes(s)
		}
		all = append(all, is)
	}
	return all
}

// tests tells the tests of an experiment, one for each number of copies.
func tests(e *experiment.Experiment) []bundle.Test {
	var all []bundle.Test
	for _, u := range run.Units(e) {
		all = append(all, bundle.Test{Name: u.Title, Kind: u.Kind, Copies: u.Copies, Figures: u.Figures(), Source: cmp.Or(u.Source, e.Source)})
	}
	return all
}
