package plan_test

import (
	"fmt"
	"net/netip"
	"slices"

	"pgregory.net/rapid"

	"orrery/internal/site"
	"orrery/internal/site/secretspec"
	"orrery/internal/site/selector"
)

// genes describe a random site. Two sites that share most of their genes are like a site before and
// after an edit.
type genes struct {
	hosts     int
	networks  [4]*networkGenes
	vethPairs [2]*vethPairGenes
	roles     [4]roleGenes
	nodes     [7]*nodeGenes
	packages  int  // of the base image
	ownSecret bool // each node has a value of its own of the secret
}

type networkGenes struct {
	subnet int // a network may take over the subnet that another gives up
	nat    bool
	mtu    int
	kind   int
	parent int // of macvlan
}

// vethPairGenes describe a veth pair. Two pairs may exchange their ends.
type vethPairGenes struct{ ends int }

// theSecret is the secret that roles of random sites may read.
const theSecret = "token"

// interfaceNames are the interfaces of the machines, and the ends of veth pairs.
var interfaceNames = []string{"enp1", "enp2", "w0", "w1", "w2", "w3"}

type roleGenes struct {
	apt, template, step, service, health, env, pip int // versions, or 0 for none
	volume, secret                                 int
	needs                                          []int // earlier roles on the same node
	healthy                                        []int // roles whose nodes must be healthy before
}

type nodeGenes struct {
	id, address  int
	host         int // 0: not declared
	roles        []int
	networks     []int
	takes        int // index of the first interface that it takes
	cpus, memory int
	privileged   bool
	virtual      bool
	sleeper      bool // no autostart
	requirements int
}

func subset(t *rapid.T, n int, name string) []int {
	var some []int
	for i := range n {
		if rapid.Bool().Draw(t, fmt.Sprint(name, i)) {
			some = append(some, i)
		}
	}
	return some
}

func small(t *rapid.T, most int, name string) int { return rapid.IntRange(0, most).Draw(t, name) }

func drawNetwork(t *rapid.T, i int) *networkGenes {
	if i > 1 && small(t, 2, "network") == 0 {
		return nil
	}
	return &networkGenes{subnet: i + small(t, 1, "subnet"), nat: rapid.Bool().Draw(t, "nat"),
		mtu: 1450 - small(t, 1, "mtu"), kind: small(t, 4, "kind"), parent: small(t, 5, "parent")}
}

func drawVethPair(t *rapid.T) *vethPairGenes {
	if small(t, 2, "vethpair") == 0 {
		return nil
	}
	return &vethPairGenes{small(t, 2, "ends")}
}

func drawRole(t *rapid.T, i int) roleGenes {
	return roleGenes{
		apt: small(t, 2, "apt"), template: small(t, 2, "template"), step: small(t, 2, "step"),
		service: small(t, 2, "service"),
		health:  small(t, 2, "health"), env: small(t, 2, "env"), pip: small(t, 1, "pip"),
		volume: small(t, 2, "volume"), secret: small(t, 2, "secret"),
		needs: subset(t, i, "needs"), healthy: subset(t, i, "healthy"),
	}
}

func drawNode(t *rapid.T, i int) *nodeGenes {
	if small(t, 3, "node") == 0 {
		return nil
	}
	return &nodeGenes{
		id: i + small(t, 1, "id"), address: i + small(t, 1, "address"), host: small(t, 3, "host"),
		roles:    subset(t, 4, "role"),
		networks: subset(t, 4, "on"), takes: small(t, 5, "takes"), cpus: small(t, 2, "cpus"), memory: small(t, 2, "memory"),
		privileged: small(t, 3, "privileged") == 0, sleeper: small(t, 3, "sleeper") == 0,
		requirements: small(t, 1, "requirements"),
		virtual:      small(t, 3, "virtual") == 0,
	}
}

func drawGenes(t *rapid.T) *genes {
	g := &genes{hosts: 1 + small(t, 2, "hosts"), packages: small(t, 1, "package"),
		ownSecret: rapid.Bool().Draw(t, "own secret")}
	for i := range g.networks {
		g.networks[i] = drawNetwork(t, i)
	}
	for i := range g.vethPairs {
		g.vethPairs[i] = drawVethPair(t)
	}
	for i := range g.roles {
		g.roles[i] = drawRole(t, i)
	}
	for i := range g.nodes {
		g.nodes[i] = drawNode(t, i)
	}
	return g
}

// edited returns changed genes for the same hosts: a few edits, and rarely all genes.
func (g *genes) edited(t *rapid.T) *genes {
	e := *g
	for range 1 + small(t, 5, "edits") {
		switch small(t, 6, "edit") {
		case 6: // only the limits
			i := small(t, len(e.nodes)-1, "of")
			if old := e.nodes[i]; old != nil {
				n := *old
				n.cpus, n.memory = small(t, 2, "cpus"), small(t, 2, "memory")
				e.nodes[i] = &n
			}
		case 5:
			i := small(t, len(e.vethPairs)-1, "of")
			e.vethPairs[i] = drawVethPair(t)
		case 0:
			i := small(t, len(e.networks)-1, "of")
			e.networks[i] = drawNetwork(t, i)
		case 1:
			i := small(t, len(e.roles)-1, "of")
			e.roles[i] = drawRole(t, i)
		case 2, 3:
			i := small(t, len(e.nodes)-1, "of")
			e.nodes[i] = drawNode(t, i)
		case 4:
			e.packages, e.ownSecret = small(t, 1, "package"), rapid.Bool().Draw(t, "own secret")
		}
	}
	return &e
}

var hostNames = []string{"sv1", "sv2", "sv3"}

// site builds a site in which package check would find no mistake.
func (g *genes) site() *site.Site {
	s := &site.Site{
		Name: "rapid", Images: []site.Image{{Name: "debian", Suite: "bookworm",
			Packages: []string{fmt.Sprint("package", g.packages)}}},
		Volumes: []site.Volume{{Name: "shared", Shared: true}},
		Secrets: []site.Secret{{Name: theSecret, Generate: 32}},
	}
	if g.ownSecret {
		s.Secrets[0].Per = secretspec.PerNode
	}
	for i := range g.hosts {
		h := site.Host{Name: hostNames[i]}
		if i > 0 { // the first host's address is derived from the others'
			h.Underlay = netip.AddrFrom4([4]byte{10, 8, 1, byte(i + 1)})
		}
		s.Hosts = append(s.Hosts, h)
	}
	g.addVethPairs(s)
	taken, parents := map[int]bool{}, map[string]bool{}
	for i, n := range g.networks {
		if n == nil || taken[n.subnet] {
			continue
		}
		taken[n.subnet] = true
		base := netip.AddrFrom4([4]byte{10, 0, byte(n.subnet), 0})
		made := site.Network{Name: fmt.Sprint("net", i), Subnet: netip.PrefixFrom(base, 24), MTU: n.mtu, NAT: n.nat}
		if i != 1 || made.Kind == site.Routed {
			made.Gateway = base.Next()
		}
		n.become(s, &made, parents)
		s.Networks = append(s.Networks, made)
	}
	for i, r := range g.roles {
		s.Roles = append(s.Roles, r.role(i))
	}
	g.addNodes(s)
	g.addHealthy(s)
	return s
}

// addVethPairs declares the veth pairs. If two share an end, only the first is declared.
func (g *genes) addVethPairs(s *site.Site) {
	for i, c := range g.vethPairs {
		if c == nil {
			continue
		}
		ends := [][2]string{{"w0", "w1"}, {"w1", "w2"}, {"w2", "w3"}}[c.ends]
		_, first := vethPairOf(s, ends[0])
		_, second := vethPairOf(s, ends[1])
		if !first && !second {
			s.VethPairs = append(s.VethPairs, site.VethPair{Name: fmt.Sprint("wire", i), Ends: ends, MTU: 1500})
		}
	}
}

// vethPairOf returns the veth pair that has an interface as an end.
func vethPairOf(s *site.Site, end string) (site.VethPair, bool) {
	i := slices.IndexFunc(s.VethPairs, func(veth site.VethPair) bool { return slices.Contains(veth.Ends[:], end) })
	if i < 0 {
		return site.VethPair{}, false
	}
	return s.VethPairs[i], true
}

// usable reports whether every host has an interface.
func usable(s *site.Site, name string) bool {
	_, end := vethPairOf(s, name)
	return end || name[0] == 'e'
}

// become sets the kind of a network, if the network can have it.
func (n *networkGenes) become(s *site.Site, made *site.Network, parents map[string]bool) {
	switch parent := interfaceNames[n.parent]; {
	case n.kind == 1:
		made.Kind, made.Gateway = site.Routed, made.Subnet.Addr().Next()
	case n.kind == 2 && usable(s, parent) && !parents[parent]:
		made.Kind, made.Interface = site.Macvlan, parent
		parents[parent] = true
	case n.kind == 3:
		made.Kind, made.NAT = site.Exclusive, false
	case n.kind == 4:
		made.Kind, made.NAT, made.VLAN = "sriov", false, 100+n.parent
		made.Interface = []string{"p0", "p1", "p1,p0"}[n.parent%3]
	}
}

// taking returns the first interface, starting from one, that is not taken.
func (n *nodeGenes) taking(s *site.Site, taken map[string]bool) (string, bool) {
	for i := range interfaceNames {
		name := interfaceNames[(n.takes+i)%len(interfaceNames)]
		if usable(s, name) && !taken[name] {
			taken[name] = true
			return name, true
		}
	}
	return "", false
}

func (r *roleGenes) role(i int) site.Role {
	name := fmt.Sprint("role", i)
	made := site.Role{Name: name, Dir: "roles/" + name}
	for _, j := range r.needs {
		made.NeedsRoles = append(made.NeedsRoles, fmt.Sprint("role", j))
	}
	if r.apt > 0 {
		made.Apt = []string{fmt.Sprint("apt", r.apt)}
	}
	if r.pip > 0 {
		made.Pip = []string{"pip"}
	}
	if r.template > 0 {
		text := fmt.Sprintf("version %d of {{.Node.Name}} {{range peers %q}}{{.Name}} {{.Address}} {{end}}", r.template, name)
		made.Files = append(made.Files, site.File{Path: "/etc/" + name, Owner: "root:root", Mode: 0o644, Template: "t.tmpl",
			Content: []byte(text)})
	}
	if r.step > 0 {
		made.Steps = append(made.Steps, site.Step{Name: "step", When: site.Boot, Script: fmt.Appendf(nil, "step %d", r.step)})
	}
	if r.service > 0 {
		made.Services = []string{fmt.Sprintf("s%d.service", r.service)}
	}
	if r.health > 0 {
		made.Health = []site.HealthCheck{{TCP: r.health}}
	}
	if r.env > 0 {
		made.Env = map[string]string{"X": fmt.Sprint(r.env)}
	}
	if r.secret > 0 {
		made.Secrets = []site.SecretUse{{Name: theSecret, Owner: "0:0", Mode: 0o400}}
	}
	switch r.volume {
	case 1:
		made.Volumes = []site.VolumeUse{{Name: name, Path: "/srv/" + name, Owner: "root:root", Mode: 0o755}}
	case 2:
		made.Volumes = []site.VolumeUse{{Name: "shared", Path: "/srv/" + name, Owner: "root:root", Mode: 0o755}}
	}
	return made
}

func (g *genes) addNodes(s *site.Site) {
	ids, addresses, interfaces := map[int]bool{}, map[int]bool{}, map[string]bool{}
	for _, n := range s.Networks {
		interfaces[n.Interface] = true
	}
	free := func(taken map[int]bool, wish int) int {
		for taken[wish] {
			wish++
		}
		taken[wish] = true
		return wish
	}
	for i, n := range g.nodes {
		if n == nil {
			continue
		}
		made := site.Node{
			Name: fmt.Sprint("node", i), ID: 100 + free(ids, n.id), Image: "debian", Engine: "fake", Privileged: n.privileged,
			Autostart: !n.sleeper, Limits: site.Limits{Cpus: float64(n.cpus), Memory: int64(n.memory) << 28},
			Requirements: site.Requirements{Text: fmt.Sprintf("pip==%d\n", n.requirements)},
		}
		if n.host > 0 && n.host <= g.hosts {
			made.Host = hostNames[n.host-1]
		}
		if n.virtual {
			made.Engine, made.Privileged = site.KVM, false
		}
		for _, r := range n.roles {
			made.Roles = append(made.Roles, fmt.Sprint("role", r))
		}
		address := 10 + free(addresses, n.address)
		for _, j := range n.networks {
			if on, ok := s.Network(fmt.Sprint("net", j)); ok {
				nic := site.NIC{Network: on.Name, Address: site.AddressAfter(on.Subnet.Addr(), address)}
				if on.Kind == site.Exclusive {
					if nic.Interface, ok = n.taking(s, interfaces); !ok {
						continue
					}
				}
				made.NICs = append(made.NICs, nic)
			}
		}
		s.Nodes = append(s.Nodes, made)
	}
	slices.SortFunc(s.Nodes, func(a, b site.Node) int { return a.ID - b.ID })
}

// addHealthy adds the nodes that must be healthy before a role is applied, except those that would
// cause a cycle.
func (g *genes) addHealthy(s *site.Site) {
	for i, r := range g.roles {
		for _, j := range r.healthy {
			text := fmt.Sprint("role=role", j)
			before := s.Roles[i].NeedsHealthy
			s.Roles[i].NeedsHealthy = append(slices.Clone(before), text)
			if circular(s) {
				s.Roles[i].NeedsHealthy = before
			}
		}
	}
}

// awaited returns the nodes that are healthy before each node is configured.
func awaited(s *site.Site) (map[string][]string, error) {
	all := map[string][]string{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		for _, r := range s.RolesOf(n) {
			for _, text := range r.NeedsHealthy {
				peers, err := selector.Select(s, text)
				if err != nil {
					return nil, err
				}
				for _, peer := range peers {
					if peer.Name != n.Name {
						all[n.Name] = append(all[n.Name], peer.Name)
					}
				}
			}
		}
	}
	return all, nil
}

func circular(s *site.Site) bool {
	waits, err := awaited(s)
	if err != nil {
		return true // no node has the role
	}
	const open, closed = 1, 2
	state := map[string]int{}
	var visit func(string) bool
	visit = func(name string) bool {
		switch state[name] {
		case open:
			return true
		case closed:
			return false
		}
		state[name] = open
		if slices.ContainsFunc(waits[name], visit) {
			return true
		}
		state[name] = closed
		return false
	}
	for name := range waits {
		if visit(name) {
			return true
		}
	}
	return false
}
