package volumes

import (
	"context"
	"fmt"
	"slices"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/orphan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// Remove deletes the data of a volume that no node uses any more: that of the former nodes, or all of
// it. It returns what it deleted.
func Remove(ctx context.Context, c *control.Session, name string, former []string) ([]orphan.Orphan, error) {
	s, err := c.Load()
	if err != nil {
		return nil, err
	}
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return nil, err
	}
	r := &removal{site: s, fleet: f, volume: name, former: former}
	j := &control.Job{Session: c, Site: s, Hosts: f, Do: r}
	if _, err := j.Run(ctx); err != nil {
		return nil, err
	}
	return r.gone, nil
}

// A removal deletes an unused volume.
type removal struct {
	control.Plain
	site   *site.Site
	fleet  *apply.Fleet
	volume string
	former []string // nodes, or nil for all
	gone   []orphan.Orphan
}

func (r *removal) Plan(_ context.Context, seen []observe.Host) (*plan.Plan, error) {
	r.gone = nil
	var unused, missing []string
	for i := range seen {
		for _, o := range orphan.All(r.site, &seen[i], r.fleet.Views().Releases()) {
			unused = append(unused, o.Volume)
			if o.Volume != r.volume || r.former != nil && !slices.Contains(r.former, o.Node) {
				continue
			}
			if err := checkRemovable(&seen[i], o); err != nil {
				return nil, err
			}
			r.gone = append(r.gone, o)
		}
	}
	for _, node := range r.former {
		if !slices.ContainsFunc(r.gone, func(o orphan.Orphan) bool { return o.Node == node }) {
			missing = append(missing, node)
		}
	}
	switch {
	case len(missing) > 0:
		return nil, problem.New(problem.Usage, "there is no unused volume %s of %s", r.volume, humanize.List(missing, 12)).
			Try("orrery volume ls lists those that are unused")
	case len(r.gone) == 0 && r.isUsed():
		return nil, problem.New(problem.Refused, "volume %s is in use; nothing was done", r.volume).
			Try("orrery down NODE --volumes deletes a node with its volumes")
	case len(r.gone) == 0:
		return nil, problem.New(problem.Usage, "there is no unused volume %q", r.volume).
			Try("%s", problem.SuggestOr(r.volume, unused, "orrery volume ls lists those that are unused"))
	}
	return plan.RemoveVolumes(r.site, seen, r.gone), nil
}

// isUsed reports whether a node of the site uses the volume.
func (r *removal) isUsed() bool {
	return slices.ContainsFunc(r.site.Nodes, func(n site.Node) bool {
		return slices.ContainsFunc(r.site.RolesOf(&n), func(role *site.Role) bool {
			return slices.ContainsFunc(role.Volumes, func(use site.VolumeUse) bool { return use.Name == r.volume })
		})
	})
}

// checkRemovable returns an error if a node that still exists mounts the volume, or if it is not
// stored with the host's state: what is elsewhere was not made by Orrery.
func checkRemovable(h *observe.Host, o orphan.Orphan) error {
	for _, n := range h.Nodes {
		for _, m := range n.Mounts {
			if m.Volume == o.Volume && (o.Node == "" || o.Node == n.Name) {
				return problem.New(problem.Refused, "node %s still has volume %s; nothing was done", n.Name, o.Volume).
					At("host " + h.Name).Try("orrery up destroys nodes that are no longer declared")
			}
		}
	}
	if !slices.ContainsFunc(h.Volumes, func(v observe.Volume) bool { return v.Path == o.Path }) {
		return problem.New(problem.Refused, "volume %s is not stored with the host's state; nothing was done", o.Volume).
			At(o.Path).Try("remove the directory yourself")
	}
	return nil
}

func (r *removal) Confirm(c *control.Session, _ *plan.Plan) (asked bool, err error) {
	return c.Confirmer.Ask(control.Question{About: control.Volumes, Site: r.site.Name, Why: fmt.Sprintf(
		"The data of %s of %s would be deleted permanently.", humanize.Plural(len(r.gone), "unused volume"), r.site.Name)})
}
