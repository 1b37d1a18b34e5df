package lab

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"

	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/host/doctor"
	"orrery/internal/lab/bundle"
	"orrery/internal/lab/facts"
	"orrery/internal/lab/report"
	"orrery/internal/lab/suspect"
	"orrery/internal/problem"
	"orrery/internal/text/humanize"
)

// Check computes every figure of a bundle's report again. It returns an error in addition to the
// result if figures differ or the bundle is damaged.
func Check(dir string) (*report.CheckResult, error) {
	c, err := report.Check(dir)
	if err != nil {
		return nil, err
	}
	if len(c.Differences) > 0 {
		err = problem.New(problem.Failed, "%s differ from those that the samples yield",
			humanize.Plural(len(c.Differences), "figure")).At(dir).
			Try("orrery lab report %s writes the report again", dir)
	}
	return c, errors.Join(err, c.Damaged.OrNil())
}

// Compare compares bundles from before and after a change, each named by its directory or ID.
func Compare(c *control.Session, before, after []string) (*report.Comparison, error) {
	sides := [2][]*report.Report{}
	seen := map[string]bool{}
	for i, names := range [][]string{before, after} {
		for _, name := range names {
			dir, err := Find(c, name)
			if err != nil {
				return nil, err
			}
			contents, err := bundle.Read(dir)
			if err != nil {
				return nil, err
			}
			at, err := filepath.Abs(dir)
			if err == nil && seen[at] && len(before)+len(after) > 2 {
				return nil, problem.New(problem.Usage, "%s is named twice", name).Try("name each run only once")
			}
			seen[at] = true
			sides[i] = append(sides[i], report.Analyse(contents))
		}
	}
	all := slices.Concat(sides[0], sides[1])
	for _, r := range all[1:] {
		if err := report.Comparable(all[0], r); err != nil {
			return nil, err
		}
	}
	return report.Compare(sides[0], sides[1], formerReports(c, all)), nil
}

// WritePage writes a page, such as a comparison, to a file that the user names.
func WritePage(of interface{ HTML(io.Writer) error }, path string) error {
	var page bytes.Buffer
	if err := of.HTML(&page); err != nil {
		return err
	}
	return host.WriteNamed(path, page.Bytes(), 0o644)
}

// maxFormer is how many former runs are read to find out by how much runs differ.
const maxFormer = 20

// formerReports returns the last other runs of the same experiment on this host, or none if the reports
// belong to several experiments or hosts.
func formerReports(c *control.Session, of []*report.Report) (all []*report.Report) {
	like := of[0].Bundle
	for _, r := range of {
		if r.Bundle.Digest != like.Digest || r.Bundle.Host != like.Host {
			return nil
		}
	}
	heads, _ := bundle.List(Bundles(c)) // unreadable bundles are skipped
	for _, h := range slices.Backward(heads) {
		same := func(r *report.Report) bool { return r.Bundle.ID == h.ID }
		if h.Digest != like.Digest || h.Host != like.Host || h.State != bundle.Done || slices.ContainsFunc(of, same) ||
			len(all) == maxFormer {
			continue
		}
		contents, err := bundle.Read(filepath.Join(Bundles(c), h.ID))
		if err != nil {
			continue
		}
		if r := report.Analyse(contents); report.Comparable(of[0], r) == nil {
			all = append(all, r)
		}
	}
	return all
}

// Doctor returns the facts about this host that make figures suspect.
func Doctor(ctx context.Context, c *control.Session) (doctor.Facts, error) {
	known, err := facts.Collect(ctx, facts.Options{Dir: c.Dirs.State})
	if err != nil {
		return nil, err
	}
	return suspect.Host(known), nil
}
