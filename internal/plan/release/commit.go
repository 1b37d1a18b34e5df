package release

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// networks plans the networks that links are moved to.
func (d *draft) networks(h *observe.Host, set []*member) []int {
	used := map[string]map[string]bool{} // what it is kept under -> name
	use := func(n spec.Node) {
		key := n.Site
		if n.Staged {
			key = site.Quarantine(n.Site, n.Release)
		}
		if used[key] == nil {
			used[key] = map[string]bool{}
		}
		for _, nic := range n.NICs {
			used[key][nic.Network] = true
		}
	}
	for _, m := range set {
		use(m.live)
		if !running(m.to) {
			use(m.to.Node)
		}
		for _, old := range m.olds {
			use(Retired(old.Node))
		}
	}
	var steps []int
	for _, n := range spec.NewMaker(d.site).Networks() {
		for _, key := range slices.Sorted(maps.Keys(used)) {
			if !used[key][n.Name] {
				continue
			}
			wanted := n
			if key != n.Site {
				wanted.Site, wanted.Bridge, wanted.Gateway, wanted.NAT, wanted.Outlet = key, site.BridgeName(key, n.Name), "", false, false
			}
			s := plan.Step{
				Kind: plan.MakeNetwork, Host: h.Name, Subject: n.Name, Reason: "for " + key, Network: &wanted, Undo: "remove network " + n.Name,
			}
			if i := slices.IndexFunc(h.Networks, func(has spec.Network) bool { return has.Site == key && has.Name == n.Name }); i >= 0 {
				if h.Networks[i].Bridge == wanted.Bridge {
					continue
				}
				s.WasNetwork, s.Undo = &wanted, "" // somebody has damaged it, and mended it stays
			}
			steps = append(steps, add(d.Plan, s))
		}
	}
	return steps
}

// commit plans that the host takes down what is live.
func (d *draft) commit(h *observe.Host, set []*member) error {
	is := h.Releases
	is.Active, is.Former = maps.Clone(is.Active), maps.Clone(is.Former)
	if is.Active == nil {
		is.Active = map[string]int{}
	}
	if is.Former == nil {
		is.Former = map[string]int{}
	}
	var needs []int
	for _, m := range set {
		was, known := is.Active[m.name]
		if !known && len(m.olds) > 0 {
			was, known = m.olds[0].Release, true
		}
		switch {
		case d.goal.Back:
			delete(is.Former, m.name)
		case d.goal.Recover: // the switch came to nothing, and what rollback returns to is as it was
		case known && was != m.to.Release && m.there(was):
			is.Former[m.name] = was
		case known && was != m.to.Release: // it ended when the site was taken down: there is no way back to it
			delete(is.Former, m.name)
		}
		is.Active[m.name] = m.to.Release
		if m.check >= 0 {
			needs = append(needs, m.check)
		}
		needs = append(needs, m.steps()...)
	}
	for name, release := range d.goal.To { // somebody has ended it since; up makes it anew
		if d.members[name] == nil {
			is.Active[name] = release
			delete(is.Former, name)
		}
	}
	is.Switch, is.Trial, is.Ended = nil, d.goal.Trial, nil
	if was := h.Releases.Trial; was != nil && d.goal.Back {
		is.Ended = &observe.TrialEnd{Release: was.Release, Result: observe.Reverted, Why: cmp.Or(d.goal.Why, "it was rolled back")}
	}
	if is.Trial == nil && !d.goal.Recover {
		is.Confirmed = slices.Clone(is.Confirmed)
		for _, m := range set {
			is.Confirm(m.to.Release)
		}
	}
	for i := range d.Steps {
		if d.Steps[i].Kind == plan.MoveLinks && d.Steps[i].Host == h.Name {
			needs = append(needs, i)
		}
	}
	committed := add(d.Plan, plan.Step{
		Kind: plan.CommitSwitch, Host: h.Name, Subject: title(set), Reason: "release " + releases(set) + " is live",
		Releases: &is, WasReleases: &h.Releases, Needs: needs, Undo: "take down what was live before",
	})
	return d.names(h, &is, committed)
}

// names plans that nodes are told of one another as they are after the switch: a release may give them other roles.
func (d *draft) names(h *observe.Host, is *observe.Releases, committed int) error {
	then := *h
	then.Releases = *is
	live, err := plan.Released(d.site, []observe.Host{then}, d.goal.Releases)
	if err != nil {
		return err
	}
	placed, err := plan.Place(live, []observe.Host{then})
	if err != nil {
		return err
	}
	digest := spec.Names(placed)
	if h.Names == "" || h.Names == digest {
		return nil
	}
	add(d.Plan, plan.Step{
		Kind: plan.WriteNames, Host: h.Name, Subject: h.Name, Reason: "roles changed", Undo: "put the former names back",
		Names: digest, WasNames: h.Names, Needs: []int{committed},
	})
	return nil
}

func names(set []*member) []string {
	var all []string
	for _, m := range set {
		all = append(all, m.name)
	}
	return all
}

func title(set []*member) string {
	if len(set) == 1 {
		return set[0].name
	}
	return fmt.Sprintf("%d nodes", len(set))
}

// releases names the releases that a set goes to.
func releases(set []*member) string {
	var all []string
	for _, m := range set {
		if text := number(m.to.Release); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, ", ")
}
