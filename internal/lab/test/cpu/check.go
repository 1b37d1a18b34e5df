package cpu

import (
	"context"
	"errors"
	"slices"

	"orrery/internal/host"
	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
	"orrery/internal/problem"
	"orrery/internal/text/pattern"
)

var banner = pattern.New(`^stress-ng, version (\S+)`)

// Check checks that stress-ng is installed, knows the methods, and has the same version in all
// places: its loops change between versions.
func (c *cpu) Check(ctx context.Context, t *test.Trial) error {
	found, err := test.Known(ctx, t.Near, banner(), "the package stress-ng", "stress-ng", "--version")
	if err != nil {
		return err
	}
	if err := c.checkSameVersion(found[1], t.Near); err != nil {
		return err
	}
	return c.checkMethods(ctx, t.Near)
}

// checkSameVersion compares the version with that of the first place that was checked.
func (c *cpu) checkSameVersion(version string, p *place.Place) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.version == "" {
		c.version, c.first = version, p.Name
	}
	if c.version != version {
		return problem.New(problem.Unable, "stress-ng has version %s here and %s in %s, and operations of different versions are not comparable",
			version, c.version, c.first).
			At(p.Name).Try("use the same layer for both")
	}
	return nil
}

// checkMethods checks that stress-ng in this place has all the methods.
func (c *cpu) checkMethods(ctx context.Context, p *place.Place) error {
	_, err := p.Output(ctx, "stress-ng", "--cpu", "1", "--cpu-method", "which")
	var list []string
	if run := (*host.RunError)(nil); errors.As(err, &run) {
		list = methods(run.Output)
	}
	if len(list) == 0 {
		return problem.New(problem.Unable, "the methods of stress-ng cannot be listed").At(p.Name).Because(err)
	}
	var all problem.List
	for _, m := range c.Methods {
		if slices.Contains(list, m) {
			continue
		}
		p := problem.New(problem.Mistake, "methods: stress-ng %s has no %q", c.version, m).At(p.Name)
		if near := problem.Suggest(m, list); near != "" {
			p = p.Try("did you mean %q?", near)
		} else {
			p = p.Try("see stress-ng --cpu 1 --cpu-method which")
		}
		all = append(all, p)
	}
	return all.OrNil()
}
