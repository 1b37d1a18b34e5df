package control

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/selector"
)

// Here gives this machine as the host of a site, with the releases that are live on it.
func (c *Session) Here(s *site.Site) (*apply.Steered, error) {
	h, err := c.Bare(s)
	if err != nil {
		return nil, err
	}
	return h, c.LoadLive(h)
}

// farVerbs are those for which a host may be another machine.
const farVerbs = "plan, up, down, start, stop, restart, move, renew, status, graph, exec, shell, cp, forward, logs, journal, stage, switch, rollback, confirm, snapshot, backup, restore, volume, release, twin, ci, image, rebalance, host and lab run"

// Bare gives this machine as the host of a site of which not much more than the key need be known.
func (c *Session) Bare(s *site.Site) (*apply.Steered, error) {
	for _, h := range s.Hosts {
		if !h.Local() {
			return nil, problem.New(problem.Unable, "host %s is at %s, and this is not yet done on other hosts than this machine", h.Name, h.Address).
				At("site.toml").Try("of the verbs, %s reach other hosts", farVerbs)
		}
	}
	if len(s.Hosts) > 1 {
		return nil, problem.New(problem.Mistake, "hosts %s and %s are both this machine", s.Hosts[0].Name, s.Hosts[1].Name).At("site.toml").
			Try("keep one of them")
	}
	name := "local"
	if len(s.Hosts) == 1 {
		name = s.Hosts[0].Name
	}
	return apply.Steer(name, s, c.Dirs, func(secrets apply.Secrets) apply.Host { return c.machine().Host(name, s.Key(), secrets) }), nil
}

// Target gives the site that is meant, this machine as its host, and the names of the nodes that selectors mean (nil: all).
func (c *Session) Target(selectors []string) (*site.Site, *apply.Steered, map[string]bool, error) {
	s, err := c.Load()
	if err != nil {
		return nil, nil, nil, err
	}
	h, chosen, err := c.Chosen(s, selectors)
	return s, h, chosen, err
}

// Chosen gives this machine as the host of a site, and the names of the nodes that selectors mean (nil: all).
func (c *Session) Chosen(s *site.Site, selectors []string) (*apply.Steered, map[string]bool, error) {
	chosen, err := Choose(s, selectors)
	if err != nil {
		return nil, nil, err
	}
	h, err := c.Here(s)
	return h, chosen, err
}

// ChosenHosts gives the hosts of a site, and the names of the nodes that selectors mean (nil: all).
func (c *Session) ChosenHosts(ctx context.Context, s *site.Site, selectors []string) (*apply.Fleet, map[string]bool, error) {
	chosen, err := Choose(s, selectors)
	if err != nil {
		return nil, nil, err
	}
	f, err := c.Hosts(ctx, s)
	return f, chosen, err
}

// Choose gives the names of the nodes that selectors mean; nil means all.
func Choose(s *site.Site, selectors []string) (map[string]bool, error) {
	if len(selectors) == 0 {
		return nil, nil
	}
	nodes, err := selector.Select(s, selectors...)
	if err != nil {
		return nil, err
	}
	chosen := map[string]bool{}
	for _, n := range nodes {
		chosen[n.Name] = true
	}
	return chosen, nil
}

// ChosenNames gives the names of the nodes that selectors mean, in the order of the site; nil means all.
func ChosenNames(s *site.Site, selectors []string) ([]string, error) {
	chosen, err := Choose(s, selectors)
	if err != nil || chosen == nil {
		return nil, err
	}
	var names []string
	for i := range s.Nodes {
		if chosen[s.Nodes[i].Name] {
			names = append(names, s.Nodes[i].Name)
		}
	}
	return names, nil
}
