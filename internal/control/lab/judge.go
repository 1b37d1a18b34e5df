package lab

import (
	"context"
	"errors"

	"orrery/internal/control"
	"orrery/internal/host/doctor"
	"orrery/internal/lab/bundle"
	"orrery/internal/lab/facts"
	"orrery/internal/lab/report"
	"orrery/internal/lab/suspect"
	"orrery/internal/phrase"
	"orrery/internal/problem"
)

// Check computes every figure of a bundle's report again. Figures that differ, and damage to the bundle, are an error besides.
func Check(dir string) (*report.Checked, error) {
	c, err := report.Check(dir)
	if err != nil {
		return nil, err
	}
	if len(c.Differences) > 0 {
		err = problem.New(problem.Failed, "%s differ from what the samples give", phrase.Count(len(c.Differences), "figure")).At(dir).
			Try("orrery lab report %s writes the report again", dir)
	}
	return c, errors.Join(err, c.Damaged.OrNil())
}

// Compare sets two bundles side by side, each by its directory or its id.
func Compare(c *control.Session, before, after string) (*report.Comparison, error) {
	var reports [2]*report.Report
	for i, name := range []string{before, after} {
		dir, err := Find(c, name)
		if err != nil {
			return nil, err
		}
		contents, err := bundle.Read(dir)
		if err != nil {
			return nil, err
		}
		reports[i] = report.Analyse(contents)
	}
	if err := report.Comparable(reports[0], reports[1]); err != nil {
		return nil, err
	}
	return report.Compare(reports[0], reports[1]), nil
}

// Doctor tells what of this host makes figures suspect.
func Doctor(ctx context.Context, c *control.Session) (doctor.Facts, error) {
	known, err := facts.Collect(ctx, facts.Options{Dir: c.Dirs.State})
	if err != nil {
		return nil, err
	}
	return suspect.Host(known), nil
}
