package volumes

import (
	"context"
	"slices"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/here"
	"orrery/internal/engine"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
)

// Adopted is a volume that a node has from another.
type Adopted struct {
	Volume string // of the former node
	To     string // where it is now
	Kept   string // where that is which the node had itself; "": it had nothing
}

// An adoption is a node that takes over the data of another.
type adoption struct {
	*control.Session
	site   *site.Site
	host   *apply.Steered
	former string
	heir   *spec.Node
	all    []volume.Adoption
}

// Adopt gives a node the volumes of a former one: those that are named, as WAS=IS if they were called otherwise, or all that it uses. What it gives has been adopted, also
// if there is an error.
func Adopt(ctx context.Context, c *control.Session, former, heir string, named []string) ([]Adopted, error) {
	s, h, _, err := c.Target(nil)
	if err != nil {
		return nil, err
	}
	n, err := control.Declared(s, heir)
	if err != nil {
		return nil, err
	}
	a := &adoption{Session: c, site: s, host: h, former: former}
	if a.heir, err = spec.NewMaker(s).Node(n); err != nil {
		return nil, err
	}
	if a.all, err = volume.Adoptions(c.Dirs, s.Key(), former, a.heir, named); err != nil {
		return nil, err
	}
	var done []Adopted
	err = c.Locked(ctx, s, h, func(r *control.Account) error {
		done, err = a.run(ctx, r)
		return err
	})
	return done, err
}

// Formers gives the nodes whose data is there and that the site file does not declare.
func Formers(c *control.Session, s *site.Site) []string {
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

// run ends what is there of the former node, and gives its data to the heir.
func (a *adoption) run(ctx context.Context, r *control.Account) ([]Adopted, error) {
	hosts, err := a.Seen(ctx, apply.Alone(a.host))
	if err != nil {
		return nil, err
	}
	ends, err := a.ending(hosts)
	if err != nil {
		return nil, err
	}
	if err := a.unused(); err != nil {
		return nil, err
	}
	var there *observe.Node
	for i := range hosts[0].Nodes {
		n := &hosts[0].Nodes[i]
		if len(ends) > 0 && n.Name == a.former {
			continue
		}
		if err := a.free(n); err != nil {
			return nil, err
		}
		if n.Name == a.heir.Name && !n.Staged {
			there = n
		}
	}
	if err := a.CarryOut(ctx, r, a.host, ends); err != nil {
		return nil, err
	}
	if there != nil { // from before it has other data: roles prepare what they find
		near, err := here.Of(a.host)
		if err != nil {
			return nil, err
		}
		if err := near.ByName()[there.Engine].Mark(ctx, engine.RefOf(&there.Node), engine.Mark{Config: there.Config, Active: there.Active}); err != nil {
			return nil, err
		}
	}
	return a.give()
}

// give gives the data to the heir.
func (a *adoption) give() (done []Adopted, err error) {
	for _, v := range a.all {
		kept, err := v.Adopt()
		if err != nil {
			return done, problem.New(problem.Failed, "volume %s of %s was not given to %s", v.Volume, a.former, a.heir.Name).Because(err)
		}
		done = append(done, Adopted{v.Volume, v.To, kept})
	}
	return done, nil
}

// free wants that a node that runs uses nothing of what changes hands.
func (a *adoption) free(n *observe.Node) error {
	for _, v := range a.all {
		if n.State != observe.Stopped && len(volume.Users(a.Dirs, a.site.Key(), []*spec.Node{&n.Node}, v.From, v.To)) > 0 {
			return problem.New(problem.Refused, "node %s runs and uses volume %s; nothing was done", n.Name, v.As).Try("orrery stop %s", n.Name)
		}
	}
	return nil
}

// unused wants that a former node, if it is still declared, does not use what is to be another's.
func (a *adoption) unused() error {
	n, still := a.site.Node(a.former)
	if !still {
		return nil
	}
	for _, r := range a.site.RolesOf(n) {
		for _, use := range r.Volumes {
			if slices.ContainsFunc(a.all, func(v volume.Adoption) bool { return v.Volume == use.Name }) {
				return problem.New(problem.Refused, "node %s uses volume %s itself; nothing was done", a.former, use.Name).At("site.toml").
					Try("orrery cp copies data from one node to another")
			}
		}
	}
	return nil
}

// ending gives the steps that end a former node, if it is still there. One that is declared ends only by down.
func (a *adoption) ending(hosts []observe.Host) ([]*plan.Step, error) {
	if _, still := a.site.Node(a.former); still {
		return nil, nil
	}
	p := plan.Down(a.site, hosts, plan.Goal{Nodes: map[string]bool{a.former: true}})
	if p.Empty() {
		return nil, nil
	}
	_, err := a.AskProduction(a.site, a.former+" would end.")
	return p.Steps, err
}
