package release

import (
	"maps"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A Goal says which releases shall be live.
type Goal struct {
	To       map[string]int     // node -> release; 0: none
	Releases map[int]*site.Site // the site as each release that is concerned makes it live; 0: as it is without
	Trial    *observe.Trial     // begins with the switch; nil: what is live then has proven itself
	// Back: the set returns to what was live before. There is nothing then to which rollback could return.
	Back  bool
	Ended *observe.TrialEnd // how the trial ends that is over with it; nil: none is
	// Recover: a switch that was interrupted is brought to its end. What does not run is put in its place and left to up.
	Recover bool
}

// Switch plans that for each node the instance of the wanted release is live, and no other. All of them are proven in quarantine
// before anything is disturbed; all links move in one step; and if a step fails, plan.Undo gives the way back.
func Switch(s *site.Site, hosts []observe.Host, g Goal) (*plan.Plan, error) {
	d := &draft{Plan: &plan.Plan{Site: s.Name}, site: s, goal: g, members: map[string]*member{}}
	for i := range hosts {
		if err := d.find(&hosts[i]); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.To)) {
		if d.members[name] == nil && (!g.Recover || !gone(hosts, name)) {
			return nil, problem.New(problem.Mistake, "node %s of release %s is not on this host", name, site.ReleaseName(g.To[name])).
				Try("orrery stage %s --release %d", name, g.To[name])
		}
	}
	if err := d.waits(); err != nil {
		return nil, err
	}
	d.prove()
	for i := range hosts {
		if err := d.host(&hosts[i]); err != nil {
			return nil, err
		}
	}
	return d.Plan, nil
}

type draft struct {
	*plan.Plan
	site    *site.Site
	goal    Goal
	members map[string]*member
	order   []*member // those that others wait for come first
	proofs  []int     // steps after which all of the set is proven
	makers  map[int]*spec.Maker
}

// prove plans that every instance is healthy in quarantine, before anything is disturbed.
func (d *draft) prove() {
	if d.goal.Recover {
		return
	}
	for _, m := range d.order {
		if m.staged() && m.to.Runs() && !m.served() {
			d.proof(m, "still healthy in quarantine")
		}
	}
}

// proof plans that an instance is healthy in quarantine, after other steps.
func (d *draft) proof(m *member, why string, needs ...int) {
	if m.to.Config.Health != "" {
		d.proofs = append(d.proofs, add(d.Plan, plan.Step{
			Kind: plan.CheckNode, Host: m.host.Name, Subject: m.name, Reason: why, Node: &m.to.Node, Was: &m.to.Node, Needs: needs,
		}))
	}
}

// host plans what is done on one host.
func (d *draft) host(h *observe.Host) error {
	var set []*member
	for _, m := range d.order {
		if m.host == h {
			set = append(set, m)
		}
	}
	if len(set) == 0 {
		if d.goal.Recover && h.Releases.Switch != nil {
			return d.commit(h, nil)
		}
		return nil
	}
	changing := slices.DeleteFunc(slices.Clone(set), func(m *member) bool { return !m.changes() && !d.cutShort(m) })
	for _, m := range changing {
		if err := d.fit(m); err != nil {
			return err
		}
	}
	if why := immovable(h, changing); why != "" {
		d.restart(h, changing, why)
	} else {
		d.warm(h, changing)
	}
	return d.commit(h, set)
}
