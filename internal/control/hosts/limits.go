package hosts

import (
	"strings"

	"orrery/internal/phrase"
	"orrery/internal/plan"
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
		if v.Shared && v.NFS == "" {
			if s.Twin != "" {
				return no("volume %s is shared by nodes, and each host would have one of its own: in a twin, it is kept with the hosts' state", v.Name).Try("choose nodes without it by --only")
			}
			return no("volume %s is shared by nodes, and each host would have one of its own", v.Name).Try("give it an nfs = \"server:/export\"")
		}
		if v.Mirror != "" {
			return no("volume %s is mirrored", v.Name).Try("leave its mirror out")
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

// Joined refuses a plan after which nodes of one routed network are on several hosts: nothing joins the links of those.
func Joined(s *site.Site, p *plan.Plan) error {
	for name, hosts := range plan.Spanning(s, p.Homes) {
		if n, ok := s.Network(name); ok && n.Kind == site.Routed {
			return problem.New(problem.Unable, "nodes of the routed network %s are, or would be, on the hosts %s, and such a network does not reach from host to host", name, strings.Join(hosts, " and ")).
				At("site.toml").Try("leave kind = \"routed\" out: a bridge reaches over hosts; or say host = on its nodes, so that they are on one")
		}
	}
	return nil
}
