package twin_test

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"orrery/internal/site"

	"pgregory.net/rapid"
)

// sites generates sites without mistakes: up to a dozen nodes on two networks, with roles that need
// other roles and wait for nodes, simulators, releases, groups, volumes and tests.
func sites() *rapid.Generator[*site.Site] {
	return rapid.Custom(func(t *rapid.T) *site.Site {
		s := &site.Site{
			Name: "karoo", Production: true, Owner: "sdp", Vars: map[string]any{"array": "KAT-7"},
			Hosts:  []site.Host{{Name: "sv1", Address: "local"}, {Name: "sv2", Address: "root@sv2"}},
			Images: []site.Image{{Name: "debian", Suite: "bookworm"}, {Name: "next", Suite: "trixie"}},
			Networks: []site.Network{
				network("cam", "10.8.67.0/24", "10.8.67.1", rapid.Bool().Draw(t, "nat")),
				network("data", "10.8.68.0/24", "", false),
			},
			Volumes: []site.Volume{
				{Name: "pgdata", Path: "/srv/pg", Mirror: "backup@ct:/srv/pg", Every: time.Hour},
				{Name: "archive", Remote: site.Remote{NFS: "nas:/archive"}, Shared: true},
			},
			Roles: roles(),
		}
		for i := range rapid.IntRange(1, 12).Draw(t, "nodes") {
			s.Nodes = append(s.Nodes, node(t, i))
		}
		become(s, rapid.SampledFrom(site.KindNames()).Draw(t, "kind"))
		for i := range rapid.IntRange(0, 3).Draw(t, "groups") {
			s.Groups = append(s.Groups, group(t, s, fmt.Sprint("g", i)))
		}
		s.Releases = []site.Release{
			{Number: 700},
			{Number: 701, Image: "next", Requirements: site.Requirements{File: "v701.txt", Text: "numpy==2.0.0\n"}},
			{Number: 702, Roles: map[string]string{"receptor": "receptor2", "db": "db2"}},
		}
		s.Tests = []site.Test{{Name: "smoke", Node: s.Nodes[0].Name, Command: []string{"true"}, User: "root",
			Timeout: time.Minute}}
		return s
	})
}

func network(name, subnet, gateway string, nat bool) site.Network {
	n := site.Network{Name: name, Subnet: netip.MustParsePrefix(subnet), NAT: nat}
	if gateway != "" {
		n.Gateway = netip.MustParseAddr(gateway)
	}
	return n
}

// become changes the network called data to a kind.
func become(s *site.Site, kind string) {
	data := &s.Networks[1]
	switch data.Kind = kind; kind {
	case site.Bridge:
		data.Kind = ""
	case site.Routed:
		data.Gateway = netip.MustParseAddr("10.8.68.1")
	case site.Macvlan:
		data.Interface = "w0"
		s.VethPairs = []site.VethPair{{Name: "wire", Ends: [2]string{"w0", "w1"}, MTU: 1500}}
	case "sriov":
		data.Interface, data.VLAN = "enp4s0f0,enp4s0f1", 100
	case site.Exclusive:
		for i := range s.Nodes {
			for k := range s.Nodes[i].NICs {
				if nic := &s.Nodes[i].NICs[k]; nic.Network == data.Name {
					nic.Interface = fmt.Sprint("enp", i)
				}
			}
		}
	}
}

func roles() []site.Role {
	volume := func(name string) []site.VolumeUse {
		return []site.VolumeUse{{Name: name, Path: "/var/lib/" + name, Owner: "root:root", Exclusive: true,
			Quarantine: site.CopyEmpty}}
	}
	return []site.Role{
		{Name: "base", Dir: "roles/base", Apt: []string{"curl"}},
		{Name: "db", Dir: "roles/db", NeedsRoles: []string{"base"}, Volumes: volume("pgdata")},
		{Name: "db2", Dir: "roles/db2", NeedsRoles: []string{"base"}, Volumes: volume("pgdata"),
			Services: []string{"db2.service"}},
		{Name: "receptor", Dir: "roles/receptor", NeedsRoles: []string{"base"},
			NeedsHealthy: []string{"all and not role=receptor*"}, SimulatedBy: "receptor-sim"},
		{Name: "receptor2", Dir: "roles/receptor2", Services: []string{"receptor2.service"}},
		{Name: "receptor-sim", Dir: "roles/receptor-sim", Services: []string{"sim.service"}},
		{Name: "store", Dir: "roles/store", Pip: []string{"numpy"}, Volumes: volume("archive")},
		{Name: "store-sim", Dir: "roles/store-sim"},
	}
}

func node(t *rapid.T, i int) site.Node {
	role := rapid.SampledFrom([]string{"db", "receptor", "store"}).Draw(t, "role")
	n := site.Node{
		Name: fmt.Sprint(role, i), ID: 2 + i*7, Image: "debian", Engine: "lxc",
		Host:       rapid.SampledFrom([]string{"", "sv1", "sv2"}).Draw(t, "host"),
		Roles:      []string{role},
		Privileged: rapid.Bool().Draw(t, "privileged"),
		Limits: site.Limits{
			Cpus: rapid.SampledFrom([]float64{0, 0.1, 4}).
				Draw(t, "cpus"), Memory: rapid.SampledFrom([]int64{0, 64 << 20, 3 << 30}).Draw(t, "memory"),
			Pin: rapid.SampledFrom([]string{"", "0-1"}).Draw(t, "pin"), Pids: 100,
		},
		Vars:         map[string]any{"dish": i},
		Requirements: site.Requirements{File: "v700.txt", Text: "numpy==1.26.0\n"},
		NICs:         []site.NIC{{Network: "cam", Address: netip.AddrFrom4([4]byte{10, 8, 67, byte(2 + i*7)})}},
	}
	if rapid.Bool().Draw(t, "on data") {
		n.NICs = append(n.NICs, site.NIC{Network: "data", Address: netip.AddrFrom4([4]byte{10, 8, 68, byte(2 + i*7)})})
	}
	if role == "store" && rapid.Bool().Draw(t, "simulated") {
		n.SimulatedBy = "store-sim"
	}
	return n
}

func group(t *rapid.T, s *site.Site, name string) site.Group {
	g := site.Group{Name: name}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; rapid.Bool().Draw(t, "in group") {
			g.Nodes, n.Groups = append(g.Nodes, n.Name), append(n.Groups, name)
		}
	}
	return g
}

// clone returns a deep copy of a site.
func clone(s *site.Site) *site.Site {
	c := *s
	c.Hosts, c.Networks, c.Images, c.Volumes = slices.Clone(s.Hosts), slices.Clone(s.Networks), slices.Clone(s.Images),
		slices.Clone(s.Volumes)
	c.Nodes, c.Groups, c.Roles, c.Tests, c.Releases = slices.Clone(s.Nodes), slices.Clone(s.Groups),
		slices.Clone(s.Roles), slices.Clone(s.Tests), slices.Clone(s.Releases)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		n.Roles, n.Groups, n.NICs, n.Aliases = slices.Clone(n.Roles), slices.Clone(n.Groups), slices.Clone(n.NICs),
			slices.Clone(n.Aliases)
		n.Vars = map[string]any{}
		for k, v := range s.Nodes[i].Vars {
			n.Vars[k] = v
		}
	}
	for i := range c.Groups {
		c.Groups[i].Nodes = slices.Clone(c.Groups[i].Nodes)
	}
	for i := range c.Releases {
		r := &c.Releases[i]
		if r.Roles != nil {
			r.Roles = map[string]string{}
		}
		for k, v := range s.Releases[i].Roles {
			r.Roles[k] = v
		}
	}
	return &c
}
