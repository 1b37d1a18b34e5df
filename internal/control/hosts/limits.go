package hosts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/overlay"
	"orrery/internal/plan/place"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// checkPortable returns an error if the site uses features that only work on the machine with the site
// directory.
func checkPortable(s *site.Site, without []string) error {
	for _, name := range without {
		if _, ok := s.Host(name); !ok {
			return UnknownHostError(s, name)
		}
	}
	no := func(format string, args ...any) *problem.Problem {
		return problem.New(problem.Unable, format+": not supported on a site with remote hosts", args...).
			At("site.toml")
	}
	for _, v := range s.Volumes {
		if s.Twin != "" && v.Shared && !v.From().Everywhere {
			return no("volume %s is shared by nodes, but in a twin each host would have its own",
				v.Name).Try("use --only to select nodes without it")
		}
	}
	return nil
}

// Names returns the names of the hosts of a site.
func Names(s *site.Site) []string {
	var names []string
	for _, h := range s.Hosts {
		names = append(names, h.Name)
	}
	return names
}

// UnknownHostError returns the error that a site has no host of this name.
func UnknownHostError(s *site.Site, name string) error {
	return problem.New(problem.Usage, "no host is called %q", name).Try("the site has %s", humanize.List(Names(s), 12))
}

// CheckColocated returns an error if a plan puts nodes of one routed network, or nodes that share a volume,
// on several hosts. Nothing connects such networks or directories between hosts. Joined does not
// check what is on unknown hosts.
func CheckColocated(s *site.Site, seen []observe.Host, p *plan.Plan) error {
	if err := checkRestored(s, seen, p.Homes); err != nil {
		return err
	}
	if err := checkSharedVolumes(s, seen, p.Homes); err != nil {
		return err
	}
	for name, hosts := range overlay.Spanning(s, p.Homes) {
		if n, ok := s.Network(name); ok && site.KindOf(n.Kind).Routed {
			return problem.New(problem.Unable,
				"nodes of the %s network %s are, or would be, on hosts %s, but this kind of network does not span hosts",
				n.Kind, name, strings.Join(hosts, " and ")).
				At("site.toml").Try("remove kind = %q: a bridge spans hosts; or set host = on its nodes to place them on one host",
				n.Kind)
		}
	}
	return nil
}

// RemoveFromSiteHint is the advice for restoring a site without a host that is lost.
const RemoveFromSiteHint = "if it is lost for good, copy the site directory, remove the host from the copied site file, give its nodes another host, and name the copy with --dir"

// UnfinishedRestoreError returns the problem that the restore of a site was interrupted and host h still has a
// part of it.
func UnfinishedRestoreError(s *site.Site, h *observe.Host) *problem.Problem {
	p := problem.New(problem.Left, "a restore of %s was interrupted: its nodes would lack their data", s.Key()).
		At("host " + h.Name)
	if h.Restoring.Going {
		return p.Try("orrery up completes it")
	}
	return p.Try("orrery restore %s, or orrery down --volumes to start over", h.Restoring.From)
}

// checkRestored returns an error if a plan would create nodes without their data because the restore of
// the site was interrupted.
func checkRestored(s *site.Site, seen []observe.Host, homes map[string]string) error {
	for i := range seen {
		r := seen[i].Restoring
		if r == nil {
			continue
		}
		if !r.Placed && !r.Untouched() {
			return UnfinishedRestoreError(s, &seen[i])
		}
		for _, name := range r.Nodes {
			if home, declared := homes[name]; r.Going && declared && home != seen[i].Name {
				return UnfinishedRestoreError(s, &seen[i]).
					Because(fmt.Errorf("the data of node %s is on this host, but the node would be on %s", name, home))
			}
		}
	}
	return nil
}

// checkSharedVolumes returns an error if nodes that share a volume are on several hosts.
func checkSharedVolumes(s *site.Site, seen []observe.Host, homes map[string]string) error {
	sharers, first := place.SharedVolumes(s), map[string]string{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		home := cmp.Or(n.Host, homes[n.Name])
		if home == "" || slices.ContainsFunc(seen, func(h observe.Host) bool { return h.Name == home && h.Unknown }) {
			continue
		}
		for _, v := range sharers[n.Name] {
			other := first[v]
			if other == "" {
				first[v] = n.Name
				continue
			}
			o, _ := s.Node(other)
			if on := cmp.Or(o.Host, homes[other]); on != home {
				return problem.New(problem.Unable,
					"nodes %s and %s share volume %s, but are, or would be, on hosts %s and %s, which would each have their own",
					other, n.Name, v, on, home).
					At("site.toml").Try("set host = %q for all nodes that share it, or nfs = \"server:/export\" for the volume", on)
			}
		}
	}
	return nil
}
