package lab

import (
	"context"

	"orrery/internal/control/here"
	"orrery/internal/engine"
	"orrery/internal/host/cgroup"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/setting"
	"orrery/internal/site"
)

// groupBare makes the control groups of the bare host's commands, with the limits that a node has
// unless its setting has others: then what it costs to be limited and counted is the same.
func (s *stand) groupBare() error {
	far, ok := s.grouped()
	if !ok {
		return nil
	}
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

// grouped returns the far end if its engine keeps nodes in control groups of this host. That of tests does not.
func (s *stand) grouped() (far *site.Node, ok bool) {
	near, err := here.Of(s.hosts.All[0])
	if err != nil {
		return nil, false
	}
	if far, ok = s.site.Node(setting.Far); !ok {
		return nil, false
	}
	_, ok = near.ByName()[far.Engine].(engine.Grouped)
	return far, ok
}

// ungroupBare removes those groups, with what a test may have left running in them.
func (s *stand) ungroupBare(ctx context.Context) error {
	if _, ok := s.grouped(); !ok {
		return nil
	}
	for _, g := range s.BareGroups(s.site.Key()) {
		if err := g.Kill(ctx); err != nil {
			return err
		}
		cgroup.Remove(g)
	}
	cgroup.RemoveEmpty(s.site.Key())
	return nil
}
