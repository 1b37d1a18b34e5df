package roster

import (
	"context"

	"orrery/internal/control"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/text/humanize"
)

// Removed describes a host that was removed from a site.
type Removed struct {
	Host    string   `json:"host"`
	Left    []string `json:"left"`    // what is still there of Orrery, and where
	Written bool     `json:"written"` // the site file was changed; otherwise the user must remove Block
	Block   string   `json:"block"`
}

// Remove removes a host from a site. It returns an error if nodes or data are on the host, so
// nothing is lost; only the nodes that each host has go with it. It removes what Orrery stores of the
// site there, and Orrery's program if the host has no other site.
func Remove(ctx context.Context, c *control.Session, name string) (*Removed, error) {
	s, err := c.Load()
	if err != nil {
		return nil, err
	}
	if s.Twin != "" {
		return nil, problem.New(problem.Usage, "%s is a twin, which uses the hosts of its site", s.Key()).
			Try("omit --twin")
	}
	if err := checkKnown(s, name); err != nil {
		return nil, err
	}
	if len(s.Hosts) == 1 {
		return nil, problem.New(problem.Refused, "%s is the only host of the site", name).
			Try("orrery down takes the site down")
	}
	dir, err := c.AbsDirectory()
	if err != nil {
		return nil, err
	}
	if err := checkNotDeclared(s, name); err != nil {
		return nil, err
	}
	file, err := sitefile.RemoveHost(dir, name)
	if err != nil {
		return nil, err
	}
	left, err := removeState(ctx, c, s, name)
	if err != nil {
		return nil, err
	}
	r := &Removed{Host: name, Left: left, Block: file.Block}
	if r.Left == nil {
		r.Left = []string{}
	}
	if err := file.Write(); problem.Is(err, problem.Unable) {
		c.Watcher.Event(control.Event{Kind: control.Trouble, Site: s.Key(), Text: err.Error(), Err: err})
		return r, nil
	} else if err != nil {
		return nil, err
	}
	r.Written = true
	return r, nil
}

// checkNotDeclared returns an error if the site file names the host for a node.
func checkNotDeclared(s *site.Site, name string) error {
	var names []string
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Host == name && n.PerHost == "" {
			names = append(names, n.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return problem.New(problem.Refused, "host %s is named by %s: %s; nothing was done", name,
		humanize.Plural(len(names), "node"), humanize.List(names, 12)).At(sitefile.Name).
		Try("remove host = %q from these nodes, or name another host", name)
}

// removeState removes what a host has of a site: what exists without nodes, such as networks, and the
// host's records.
func removeState(ctx context.Context, c *control.Session, s *site.Site, name string) ([]string, error) {
	h, f, err := withOnlyHost(ctx, c, s, name)
	if err != nil {
		return nil, err
	}
	j := &control.Job{Session: c, Site: s, Hosts: f, Do: control.Steps(func(seen []observe.Host) (*plan.Plan, error) {
		at := observedHost(seen, name)
		if err := checkEmpty(s, at); err != nil {
			return nil, err
		}
		return plan.Down(s, []observe.Host{*at}, plan.Goal{}), nil
	})}
	if _, err := j.Run(ctx); err != nil {
		return nil, err
	}
	letGo, err := c.LockSite(ctx, s, f)
	if err != nil {
		return nil, err
	}
	defer letGo()
	seen, err := c.Observe(ctx, f)
	if err != nil {
		return nil, err
	}
	if err := checkEmpty(s, observedHost(seen, name)); err != nil {
		return nil, err
	}
	return h.State.Forget(ctx)
}

// checkEmpty returns an error if nodes or data of a site are on a host, apart from the nodes that each host
// has.
func checkEmpty(s *site.Site, h *observe.Host) error {
	var names []string
	for i := range h.Nodes {
		if n, ok := s.Node(h.Nodes[i].Name); !ok || n.PerHost == "" {
			names = append(names, h.Nodes[i].Name)
		}
	}
	if len(names) > 0 {
		return problem.New(problem.Refused, "host %s still has %s: %s; nothing was done", h.Name,
			humanize.Plural(len(names), "node"), humanize.List(names, 12)).
			Try("orrery host drain %s moves them to other hosts", h.Name)
	}
	if len(h.Volumes) > 0 {
		var names []string
		for _, v := range h.Volumes {
			names = append(names, v.Path)
		}
		return problem.New(problem.Refused,
			"host %s still has volumes of the site that no node there uses: %s; nothing was done", h.Name,
			humanize.List(names, 8)).
			Try("save the data that you need, and remove the volumes on that host")
	}
	return nil
}
