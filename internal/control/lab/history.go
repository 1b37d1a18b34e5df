package lab

import (
	"path/filepath"

	"orrery/internal/control"
	"orrery/internal/lab/bundle"
	"orrery/internal/lab/report"
	"orrery/internal/lab/report/history"
	"orrery/internal/problem"
)

// maxHistory is how many runs are chosen without names. The report of each must be computed again.
const maxHistory = 30

// History compares a series of bundles, each named by its directory or ID. Without names, it uses
// the bundles of one experiment on this host, which is the last one that ran if experiment is "".
func History(c *control.Session, names []string, experiment string) (*history.History, error) {
	var dirs []string
	for _, name := range names {
		dir, err := Find(c, name)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, dir)
	}
	if len(names) == 0 {
		var err error
		if dirs, err = runsOf(c, experiment); err != nil {
			return nil, err
		}
	}
	var all []*report.Report
	for _, dir := range dirs {
		contents, err := bundle.Read(dir)
		if err != nil {
			return nil, err
		}
		all = append(all, report.Analyse(contents))
	}
	return history.New(all), nil
}

// runsOf returns the directories of the last runs of an experiment on this host, the oldest first.
// It leaves out runs without a complete round.
func runsOf(c *control.Session, experiment string) ([]string, error) {
	heads, err := bundle.List(Bundles(c))
	var dirs []string
	for i := len(heads) - 1; i >= 0 && len(dirs) < maxHistory; i-- {
		if h := heads[i]; h.Rounds > 1 && (experiment == "" || h.Experiment == experiment) {
			experiment = h.Experiment
			dirs = append([]string{filepath.Join(Bundles(c), h.ID)}, dirs...)
		}
	}
	if len(dirs) == 0 && err == nil {
		p := problem.New(problem.Usage, "no runs on this host")
		if experiment != "" {
			p = problem.New(problem.Usage, "no runs of experiment %s on this host", experiment)
		}
		return nil, p.Try("orrery lab ls lists the runs; bundles elsewhere can be named by their directories")
	}
	return dirs, err
}
