package lab

import (
	"context"

	"orrery/internal/host/cgroup"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/setting"
)

// groupBare makes the control groups of the bare host's commands, with the limits that a node has unless its setting has
// others: then what it costs to be limited and counted is the same.
func (s *stand) groupBare() error {
	far, _ := s.site.Node(setting.Far)
	for _, g := range s.BareGroups(s.site.Key()) {
		if err := g.Make(); err != nil {
			return err
		}
		if err := g.Limit(experiment.Bare, far.Limits); err != nil {
			return err
		}
	}
	return nil
}

// ungroupBare removes those groups, with what a test may have left running in them.
func (s *stand) ungroupBare(ctx context.Context) error {
	for _, g := range s.BareGroups(s.site.Key()) {
		if err := g.Kill(ctx); err != nil {
			return err
		}
		cgroup.Remove(g)
	}
	cgroup.RemoveEmpty(s.site.Key())
	return nil
}
