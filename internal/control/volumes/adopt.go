package volumes

import (
	"context"
	"slices"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
)

// Adopted is a volume that was moved from one node to another.
type Adopted = apply.AdoptResult

// An adoption moves the data of a former node to its heir.
type adoption struct {
	Session *control.Session
	site    *site.Site
	fleet   *apply.Fleet
	of      apply.AdoptRequest
	all     []apply.Adoption
}

// Adopt moves volumes of a former node to its heir. It moves the named volumes, as WAS=IS if the
// heir has another name for a volume, or all volumes that the heir uses. It returns what was moved,
// even if there is an error.
func Adopt(ctx context.Context, c *control.Session, former, heir string, named []string) ([]Adopted, error) {
	s, err := c.Load()
	if err != nil {
		return nil, err
	}
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return nil, err
	}
	n, err := control.DeclaredNode(s, heir)
	if err != nil {
		return nil, err
	}
	a := &adoption{Session: c, site: s, fleet: f, of: apply.AdoptRequest{Former: former, Named: named}}
	node, err := spec.NewBuilder(s).Node(n)
	if err != nil {
		return nil, err
	}
	a.of.Heir = *node
	var done []Adopted
	err = c.RunLocked(ctx, s, f, func(r *control.JournalWriter) error {
		done, err = a.run(ctx, r)
		return err
	})
	return done, err
}

// FormerNodes returns the nodes that have data on this machine but are not in the site file.
func FormerNodes(c *control.Session, s *site.Site) []string {
	var names []string
	all, _ := volume.List(c.Dirs, s.Key())
	for _, v := range all {
		if _, still := s.Node(v.Node); !still && v.Node != "" {
			names = append(names, v.Node)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// run destroys the former node if it still exists, and moves its data to the heir.
func (a *adoption) run(ctx context.Context, r *control.JournalWriter) ([]Adopted, error) {
	seen, err := a.Session.Observe(ctx, a.fleet)
	if err != nil {
		return nil, err
	}
	h, err := a.findDataHost(ctx, seen)
	if err != nil {
		return nil, err
	}
	ends, err := a.destroySteps(seen)
	if err != nil {
		return nil, err
	}
	if err := a.checkUnused(); err != nil {
		return nil, err
	}
	for _, v := range a.all {
		for _, user := range v.Users {
			if len(ends) == 0 || user != a.of.Former {
				return nil, apply.InUse(user, v.As)
			}
		}
	}
	if err := r.CarryOut(ctx, a.Session.Watcher, a.fleet, ends); err != nil {
		return nil, err
	}
	return h.Volumes.Adopt(ctx, a.of)
}

// findDataHost returns the host that has the data. The data stays on that host, so the heir must be there,
// too.
func (a *adoption) findDataHost(ctx context.Context, seen []observe.Host) (*apply.HostClient, error) {
	all, errs := make([][]apply.Adoption, len(a.fleet.All)), make([]error, len(a.fleet.All))
	_ = a.fleet.ForEach(func(i int, h *apply.HostClient) error {
		all[i], errs[i] = h.Volumes.Adoptions(ctx, a.of)
		return nil
	})
	n, _ := a.site.Node(a.of.Heir.Name)
	home, holder := n.Host, -1
	for i := range a.fleet.All {
		if errs[i] != nil && !problem.Is(errs[i], problem.Usage) {
			return nil, errs[i]
		}
		present := slices.ContainsFunc(seen[i].Nodes, func(node observe.Node) bool {
			return node.Name == n.Name &&
				!node.Staged
		})
		if present {
			home = a.fleet.All[i].Name
		}
		if errs[i] == nil && (holder < 0 || present) {
			holder = i
		}
	}
	if holder < 0 {
		return nil, errs[0]
	}
	h := a.fleet.All[holder]
	switch {
	case len(a.fleet.All)+len(a.fleet.Unknown) == 1, home == h.Name:
		a.all = all[holder]
		return h, nil
	case home == "":
		return nil, problem.New(problem.Unable,
			"the data of %s is on host %s, but node %s may be placed on another; nothing was done", a.of.Former, h.Name, n.Name).
			At("site.toml").
			Try("set host = %q for %s", h.Name, n.Name)
	}
	return nil, problem.New(problem.Unable, "the data of %s is on host %s, but node %s is on %s; nothing was done",
		a.of.Former, h.Name, n.Name, home).
		Try("orrery move %s --to %s first", n.Name, h.Name)
}

// checkUnused returns an error if the former node is still declared and still uses a volume that is to
// be moved.
func (a *adoption) checkUnused() error {
	n, still := a.site.Node(a.of.Former)
	if !still {
		return nil
	}
	for _, r := range a.site.RolesOf(n) {
		for _, use := range r.Volumes {
			if slices.ContainsFunc(a.all, func(v apply.Adoption) bool { return v.Volume == use.Name }) {
				return problem.New(problem.Refused, "node %s still uses volume %s; nothing was done", a.of.Former, use.Name).
					At("site.toml").
					Try("orrery cp copies data from one node to another")
			}
		}
	}
	return nil
}

// destroySteps returns the steps that destroy the former node, if it still exists. A declared node is not
// destroyed, because only down may do that.
func (a *adoption) destroySteps(hosts []observe.Host) ([]*plan.Step, error) {
	if _, still := a.site.Node(a.of.Former); still {
		return nil, nil
	}
	p := plan.Down(a.site, hosts, plan.Goal{Nodes: map[string]bool{a.of.Former: true}})
	if p.Empty() {
		return nil, nil
	}
	_, err := a.Session.AskProduction(a.site, a.of.Former+" would be destroyed.")
	return p.Steps, err
}
