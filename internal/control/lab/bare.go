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

// createBareGroups creates the control groups for the commands on the bare host. They have the limits of a
// node without settings of its own, so that the cost of limits and accounting is the same.
func (s *labSite) createBareGroups() error {
	far, ok := s.farNodeInGroups()
	if !ok {
		return nil
	}
	for _, g := range s.BareGroups(s.site.Key()) {
		if err := g.Create(); err != nil {
			return err
		}
		if err := g.SetLimits(experiment.Bare, far.Limits); err != nil {
			return err
		}
	}
	return nil
}

// farNodeInGroups returns the far node if its engine runs nodes in control groups of this host. The engine
// in tests does not.
func (s *labSite) farNodeInGroups() (far *site.Node, ok bool) {
	near, err := here.AsLocal(s.hosts.All[0])
	if err != nil {
		return nil, false
	}
	if far, ok = s.site.Node(setting.FarEnd); !ok {
		return nil, false
	}
	_, ok = near.ByName()[far.Engine].(engine.CgroupProvider)
	return far, ok
}

// removeBareGroups removes these groups, and kills what a test may have left running in them.
func (s *labSite) removeBareGroups(ctx context.Context) error {
	if _, ok := s.farNodeInGroups(); !ok {
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
