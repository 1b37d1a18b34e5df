package hosts

import (
	"cmp"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/plan"
	"orrery/internal/plan/place"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// mayTravel refuses what a site has that only works on the machine with the site directory.
func mayTravel(s *site.Site, without []string) error {
	for _, name := range without {
		if h, ok := s.Host(name); !ok || h.Local() && len(s.Hosts) == 1 {
			return problem.New(problem.Usage, "no host is called %q", name).Try("the site has %s", phrase.List(Names(s), 12))
		}
	}
	no := func(format string, args ...any) *problem.Problem {
		return problem.New(problem.Unable, format+": not yet on a site with a host that is not local", args...).At("site.toml")
	}
	for _, x := range s.Images {
		if x.Import != "" {
			return no("image %s is imported from this machine", x.Name).Try("give it a suite")
		}
	}
	for _, v := range s.Volumes {
		switch {
		case s.Twin != "" && v.Shared && v.NFS == "":
			return no("volume %s is shared by nodes, and each host would have one of its own: in a twin, it is kept with the hosts' state", v.Name).Try("choose nodes without it by --only")
		case v.Mirror != "" && v.Every > 0:
			return no("volume %s is mirrored by itself", v.Name).Try("leave every out, and let a timer of your own run: orrery volume mirror %s", v.Name)
		}
	}
	return nil
}

// Names gives the names of the hosts of a site.
func Names(s *site.Site) []string {
	var names []string
	for _, h := range s.Hosts {
		names = append(names, h.Name)
	}
	return names
}

// Joined refuses a plan after which nodes of one routed network, or such as share a volume, are on several hosts: nothing joins the links, or the directories, of those. What is on hosts that are
// unknown is left to whoever knows.
func Joined(s *site.Site, seen []observe.Host, p *plan.Plan) error {
	if err := shared(s, seen, p.Homes); err != nil {
		return err
	}
	for name, hosts := range plan.Spanning(s, p.Homes) {
		if n, ok := s.Network(name); ok && n.Kind == site.Routed {
			return problem.New(problem.Unable, "nodes of the routed network %s are, or would be, on the hosts %s, and such a network does not reach from host to host", name, strings.Join(hosts, " and ")).
				At("site.toml").Try("leave kind = \"routed\" out: a bridge reaches over hosts; or say host = on its nodes, so that they are on one")
		}
	}
	return nil
}

// shared refuses nodes on several hosts that share a volume.
func shared(s *site.Site, seen []observe.Host, homes map[string]string) error {
	sharers, first := place.Sharers(s), map[string]string{}
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
				return problem.New(problem.Unable, "nodes %s and %s share volume %s, and are, or would be, on hosts %s and %s, each of which would have one of its own", other, n.Name, v, on, home).
					At("site.toml").Try("say host = %q for all that share it, or give it an nfs = \"server:/export\"", on)
			}
		}
	}
	return nil
}
