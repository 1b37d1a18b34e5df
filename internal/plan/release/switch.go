package release

import (
	"maps"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/clash"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/selector"
	"orrery/internal/site/spec"
)

// A Goal is which releases must be live after a switch.
type Goal struct {
	To       map[string]int     // node -> release, or 0 for no release
	Releases map[int]*site.Site // release -> the site with it live, or without any release for 0
	Trial    *observe.Trial     // the trial that begins with the switch, or nil if none does
	// Holds means that the record of the switch stays, because more must be done before it is over.
	Holds bool
	// Back means that the set returns to what was live before. Afterwards there is nothing to which
	// rollback could return.
	Back  bool
	Ended *observe.TrialEnd // how the trial ends that is over with this switch, or nil
	// Recover means that an interrupted switch is finished. Nodes that do not run are put in their
	// place and left to up.
	Recover bool
}

// Switch plans that for each node the instance of the wanted release is live, and no other. All
// instances are proven in quarantine before anything is disturbed, and all links move in one step.
// If a step fails, wayback.Undo plans the way back.
func Switch(s *site.Site, hosts []observe.Host, g Goal) (*plan.Plan, error) {
	d := &switchPlanner{Plan: &plan.Plan{Site: s.Name}, site: s, goal: g, members: map[string]*member{}}
	for i := range hosts {
		if err := d.findMembers(&hosts[i]); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.To)) {
		if d.members[name] == nil && (!g.Recover || !isGone(hosts, name)) {
			return nil, problem.New(problem.Mistake, "node %s of release %s does not exist on this host", name,
				site.ReleaseName(g.To[name])).
				Try("orrery stage %s --release %d", name, g.To[name])
		}
	}
	if err := checkSameHost(d.members, hosts); err != nil {
		return nil, err
	}
	var err error
	if d.spans, err = newSpans(s, g.Releases, hosts, d.members); err != nil {
		return nil, err
	}
	d.makers = makers{d.spans, map[int]*spec.Builder{}}
	if err := d.orderMembers(hosts); err != nil {
		return nil, err
	}
	if err := d.postponeProofs(); err != nil {
		return nil, err
	}
	if err := d.planAll(hosts); err != nil {
		return nil, err
	}
	return d.Plan, d.checkNetworks(hosts)
}

// checkNetworks returns an error if a network of the plan cannot be made. It does not refuse a way back or
// the end of an interrupted switch, which do what they can.
func (d *switchPlanner) checkNetworks(hosts []observe.Host) error {
	if d.goal.Back || d.goal.Recover {
		return nil
	}
	networks := spec.NewBuilder(d.site).Networks()
	var refused problem.List
	for _, s := range d.Steps {
		at := slices.IndexFunc(hosts, func(h observe.Host) bool { return h.Name == s.Host })
		if s.Kind != plan.MakeNetwork || at < 0 {
			continue
		}
		if p := clash.CheckPlanned(&hosts[at], s.Network, networks); p != nil {
			refused = append(refused, p)
		}
	}
	return refused.OrNil()
}

// checkSameHost returns an error if a node of the set would be live on another host than before, since its
// volumes and links are on that host.
func checkSameHost(set map[string]*member, hosts []observe.Host) error {
	for i := range hosts {
		h := &hosts[i]
		for j := range h.Nodes {
			n := &h.Nodes[j]
			m := set[n.Name]
			if m == nil || m.host == h || !isPartlyLive(n) {
				continue
			}
			return problem.New(problem.Unable,
				"node %s of release %s is on host %s, but the live one is on %s: a switch cannot move nodes between hosts",
				n.Name, site.ReleaseName(m.to.Release), m.host.Name, h.Name).
				Try("orrery move %s --to %s brings them together; or write host = %q for it and stage it again",
					n.Name, h.Name,
					h.Name)
		}
	}
	return nil
}

type switchPlanner struct {
	*plan.Plan
	site    *site.Site
	goal    Goal
	members map[string]*member
	order   []*member // members that others wait for come first
	proofs  []int     // steps after which the whole set is proven
	makers  makers
	peers   selector.Peers
	spans   *spans
	// published are the steps that change the ports of hosts when the links have moved.
	published []int

	quarantines quarantines
}

// A hostPart is what is done on one host.
type hostPart struct {
	host     *observe.Host
	set      []*member // members on the host
	changing []*member // members that must change
	why      string    // why they are stopped and started, or "" if they are not
	networks []int     // steps that make the networks
	ground   []int     // steps after which links can move or nodes can start
	moves    []plan.Move
}

// planAll plans the steps on all hosts. Each phase is planned on all hosts before the next: proofs,
// then what disturbs, then the links, and then the records.
func (d *switchPlanner) planAll(hosts []observe.Host) error {
	var parts []*hostPart
	for i := range hosts {
		h := &hosts[i]
		p := &hostPart{host: h}
		for _, m := range d.order {
			if m.host == h {
				p.set = append(p.set, m)
			}
		}
		p.changing = slices.DeleteFunc(slices.Clone(p.set), func(m *member) bool { return !d.goal.mustChange(m) })
		for _, m := range p.changing {
			if err := d.checkReady(m); err != nil {
				return err
			}
		}
		p.why = restartReason(h, p.changing)
		parts = append(parts, p)
	}
	for _, p := range parts {
		if err := d.prepareHost(p); err != nil {
			return err
		}
	}
	d.planProofs()
	for _, m := range slices.Backward(d.order) { // members that wait for others are retired first
		if d.goal.mustChange(m) {
			d.retire(m)
		}
	}
	var ground []int
	for _, p := range parts {
		d.releaseLive(p)
		ground = append(ground, p.ground...)
	}
	d.moveLinks(parts, ground)
	return d.commit(hosts, parts)
}

// prepareHost plans the steps that disturb no node.
func (d *switchPlanner) prepareHost(p *hostPart) error {
	if len(p.set) == 0 {
		return nil
	}
	w := hostNetworks{Plan: d.Plan, spans: d.spans, host: p.host}
	if err := w.networks(p.changing); err != nil {
		return err
	}
	p.networks = w.steps
	for _, m := range p.changing {
		if p.why == "" || m.isProvenInQuarantine() || d.quarantines.mustAnswer(m) {
			d.startStaged(m, p.networks)
		}
	}
	return nil
}

// releaseLive plans that live instances release what they hold.
func (d *switchPlanner) releaseLive(p *hostPart) {
	if p.why == "" {
		d.prepareRunning(p)
	} else {
		d.planStops(p)
	}
}

// moveLinks plans that the links of all hosts move, and that the new live instances start their
// live-only work.
func (d *switchPlanner) moveLinks(parts []*hostPart, ground []int) {
	moved := slices.Clone(d.proofs)
	for _, p := range parts {
		if len(p.moves) > 0 {
			moved = append(moved, add(d.Plan, plan.Step{
				Kind: plan.MoveLinks, Host: p.host.Name, Subject: title(p.changing),
				Reason: "release " + releases(p.changing) + " goes live", Moves: p.moves, Needs: ground,
				Disturbs: names(p.changing), Undo: "move them back",
			}))
		}
	}
	for _, p := range parts {
		d.publish(p, slices.Concat(moved, ground))
	}
	after := map[*member][]int{} // the members that run then
	for _, p := range parts {
		if p.why != "" {
			d.planStarts(p, ground, moved)
		}
		for _, m := range p.changing {
			switch {
			case m.start >= 0:
				after[m] = []int{m.start}
			case !m.runs():
			case len(p.moves) == 0:
				after[m] = slices.Concat(moved, ground)
			default:
				after[m] = moved
			}
		}
	}
	for _, m := range d.order {
		if needs, runs := after[m]; runs {
			d.activate(m, needs)
		}
	}
}
