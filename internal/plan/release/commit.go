package release

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// commit plans that all hosts record what is live. Each host records this for the whole site.
func (d *switchPlanner) commit(hosts []observe.Host, parts []*hostPart) error {
	var needs []int
	for _, m := range d.order {
		needs = append(needs, m.done...)
		needs = append(needs, m.steps()...)
	}
	for i := range d.Steps {
		if d.Steps[i].Kind == plan.MoveLinks || slices.Contains(d.published, i) {
			needs = append(needs, i)
		}
	}
	then := slices.Clone(hosts)
	committed := make([]int, len(hosts))
	for i, p := range parts {
		h := &hosts[i]
		committed[i] = -1
		if h.Unknown || len(d.order) == 0 && (!d.goal.Recover || h.Releases.Switch == nil) {
			continue
		}
		record := d.record(h)
		then[i].Releases = record
		on := p.set
		if len(on) == 0 {
			on = d.order
		}
		committed[i] = add(d.Plan, plan.Step{
			Kind: plan.CommitSwitch, Host: h.Name, Subject: title(on), Reason: "release " + releases(d.order) + " is live",
			Releases: &record, OldReleases: &h.Releases, Needs: needs, Undo: "record the previous releases",
		})
	}
	for i := range hosts {
		if committed[i] < 0 {
			continue
		}
		if err := d.names(&hosts[i], then, committed); err != nil {
			return err
		}
	}
	return nil
}

// record returns a host's record after the switch.
func (d *switchPlanner) record(h *observe.Host) observe.Releases {
	record := h.Releases
	record.Active, record.Former = maps.Clone(record.Active), maps.Clone(record.Former)
	if record.Active == nil {
		record.Active = map[string]int{}
	}
	if record.Former == nil {
		record.Former = map[string]int{}
	}
	for _, m := range d.order {
		previous, known := record.Active[m.name]
		if !known && len(m.olds) > 0 {
			previous, known = m.olds[0].Release, true
		}
		switch {
		case d.goal.Back:
			delete(record.Former, m.name)
		case d.goal.Recover && record.Former[m.name] == m.to.Release: // the switch had come further
			delete(record.Former, m.name)
		case d.goal.Recover: // the switch failed, and rollback returns to the same as before
		case known && previous != m.to.Release && m.hasRelease(previous):
			record.Former[m.name] = previous
		case known && previous != m.to.Release: // it ended when the site was taken down, so no rollback to it
			delete(record.Former, m.name)
		}
		record.Active[m.name] = m.to.Release
	}
	for name, release := range d.goal.To { // the user has destroyed the node since, and up recreates it
		if d.members[name] == nil {
			record.Active[name] = release
			delete(record.Former, name)
		}
	}
	if d.goal.Holds {
		return record
	}
	record.Switch, record.Trial, record.Ended = nil, d.goal.Trial, d.goal.Ended
	if record.Trial == nil && !d.goal.Recover {
		record.Confirmed = slices.Clone(record.Confirmed)
		for _, m := range d.order {
			record.Confirm(m.to.Release)
		}
	}
	return record
}

// names plans to update what nodes know of one another after the switch, since a release may give
// them other roles.
func (d *switchPlanner) names(h *observe.Host, then []observe.Host, committed []int) error {
	placed, err := plan.PlacedAsLive(d.site, then, d.goal.Releases)
	if err != nil {
		return err
	}
	digest := spec.NamesDigest(placed)
	if h.Names == "" || h.Names == digest {
		return nil
	}
	add(d.Plan, plan.Step{
		Kind: plan.WriteNames, Host: h.Name, Subject: h.Name, Reason: "roles changed",
		Undo:  "restore the previous names",
		Names: digest, OldNames: h.Names, Needs: slices.DeleteFunc(slices.Clone(committed),
			func(n int) bool { return n < 0 }),
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

// releases returns the names of the releases to which a set switches.
func releases(set []*member) string {
	var all []string
	for _, m := range set {
		if text := site.ReleaseName(m.to.Release); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, ", ")
}
