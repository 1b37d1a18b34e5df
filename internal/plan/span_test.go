package plan

import (
	"bytes"
	"encoding/base64"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/plan/overlay"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// spanning is a site with a node on each of three hosts, on one network that spans all of them and
// one that spans the first two.
func spanning() (*site.Site, []observe.Host) {
	s := &site.Site{
		Name: "toykat",
		Hosts: []site.Host{{Name: "sv1", Address: "local"}, {Name: "sv2", Address: "ops@10.8.1.2:2222"},
			{Name: "sv3", Address: "third", Underlay: netip.MustParseAddr("10.8.1.3")}},
		Images: []site.Image{{Name: "debian", Suite: "bookworm"}},
	}
	for i, name := range []string{"lan", "data"} {
		s.Networks = append(s.Networks, site.Network{Name: name,
			Subnet: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 0}), 24)})
	}
	var hosts []observe.Host
	for i, h := range s.Hosts {
		n := site.Node{Name: string(rune('a' + i)), ID: 11 + i, Image: "debian", Engine: "fake", Host: h.Name}
		for j, on := range s.Networks {
			if j == 0 || i < 2 {
				n.NICs = append(n.NICs, site.NIC{Network: on.Name, Address: site.AddressAfter(on.Subnet.Addr(), n.ID)})
			}
		}
		s.Nodes = append(s.Nodes, n)
		at := netip.AddrFrom4([4]byte{10, 8, 1, byte(i + 1)}).String()
		hosts = append(hosts, observe.Host{Name: h.Name, Cpus: 8, Memory: 1 << 34,
			Engines: map[string]observe.Capabilities{"fake": {}}, Addresses: []observe.Address{
				{Prefix: "192.168.0." + string(rune('1'+i)) + "/24", Link: "eth0", MTU: 1500},
				{Prefix: at + "/24", Link: "eth1", MTU: 1500},
				{Prefix: "2001:db8::" + string(rune('1'+i)) + "/64", Link: "eth1", MTU: 1500},
			}})
	}
	return s, hosts
}

// made returns the networks that a plan makes, by host and name.
func made(t *testing.T, s *site.Site, hosts []observe.Host, goal Goal) map[string]spec.Network {
	t.Helper()
	p, err := Up(s, hosts, goal)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]spec.Network{}
	for _, step := range p.Steps {
		if step.Kind == MakeNetwork {
			all[step.Host+" "+step.Subject] = *step.Network
		}
	}
	return all
}

// TestSpan: every host of a network is told of the nodes on its other hosts, and of no others.
func TestSpan(t *testing.T) {
	s, hosts := spanning()
	all := made(t, s, hosts, Goal{})
	mac := func(node, network string) string { return site.MAC("toykat", node, network) }
	lan := site.VNI("toykat", "lan")
	for where, want := range map[string]spec.VXLAN{
		"sv1 lan":  {ID: lan, Local: "10.8.1.1", Peers: "10.8.1.2 " + mac("b", "lan") + ";10.8.1.3 " + mac("c", "lan")},
		"sv2 lan":  {ID: lan, Local: "10.8.1.2", Peers: "10.8.1.1 " + mac("a", "lan") + ";10.8.1.3 " + mac("c", "lan")},
		"sv3 lan":  {ID: lan, Local: "10.8.1.3", Peers: "10.8.1.1 " + mac("a", "lan") + ";10.8.1.2 " + mac("b", "lan")},
		"sv1 data": {ID: site.VNI("toykat", "data"), Local: "10.8.1.1", Peers: "10.8.1.2 " + mac("b", "data")},
	} {
		if all[where].VXLAN != want || all[where].MTU != 1450 {
			t.Errorf("%s is %+v", where, all[where])
		}
	}
	if len(all) != 5 {
		t.Errorf("%d networks are made", len(all))
	}

	// If a node is added on a host that already has the network, the other hosts are updated,
	// whichever nodes are selected.
	for i := range hosts {
		for where, n := range all {
			if strings.HasPrefix(where, hosts[i].Name) {
				hosts[i].Networks = append(hosts[i].Networks, observe.Network{Network: n})
			}
		}
	}
	s.Nodes = append(s.Nodes, site.Node{Name: "d", ID: 14, Image: "debian", Engine: "fake", Host: "sv2",
		NICs: []site.NIC{{Network: "lan", Address: netip.MustParseAddr("10.0.0.14")}}})
	news := made(t, s, hosts, Goal{Nodes: map[string]bool{"d": true}})
	if len(news) != 2 || !strings.Contains(news["sv1 lan"].VXLAN.Peers, mac("d", "lan")) ||
		!strings.Contains(news["sv3 lan"].VXLAN.Peers, mac("d", "lan")) {
		t.Errorf("of a new node are told %v", news)
	}

	// An unselected node with the former MTU causes a warning.
	hosts[0].Nodes = []observe.Node{{Node: spec.Node{Name: "a", ID: 11, Engine: "fake",
		NICs: []spec.NIC{{Network: "lan", MTU: 1500}}}}}
	if p, err := Up(s, hosts, Goal{Nodes: map[string]bool{"d": true}}); err != nil || len(p.Warnings) != 1 ||
		!strings.Contains(p.Warnings[0], "until up is run for them: a") {
		t.Errorf("the warnings are %v (%v)", p.Warnings, err)
	}
	hosts[0].Nodes = nil

	// Networks on one host only are not joined.
	s.Nodes = slices.DeleteFunc(s.Nodes, func(n site.Node) bool { return n.Host != "sv1" })
	if alone := made(t, s, hosts, Goal{}); alone["sv1 lan"].VXLAN != (spec.VXLAN{}) || alone["sv1 lan"].MTU != 1500 {
		t.Errorf("a network on one host is %v", alone["sv1 lan"])
	}
}

// TestSpanMTU: frames between hosts must fit into the smallest MTU of these, with the headers in
// front of them.
func TestSpanMTU(t *testing.T) {
	for what, c := range map[string]struct {
		declared, takes int
		ipv6, unknown   bool
		want            int
		wrong           string
	}{
		"usual":    {takes: 1500, want: 1450},
		"large":    {takes: 9000, want: 1500},
		"larger":   {takes: 9000, declared: 8950, want: 8950},
		"small":    {takes: 1400, want: 1350},
		"IPv6":     {takes: 1500, ipv6: true, want: 1430},
		"declared": {takes: 1500, declared: 1400, want: 1400},
		"does not fit": {takes: 1500, declared: 1451,
			wrong: "mtu 1451 is too large between hosts sv1 and sv2 and sv3, where at most 1450 fit"},
		"does not fit there":  {takes: 1500, ipv6: true, declared: 1450, wrong: "where at most 1430 fit"},
		"no room":             {takes: 600, wrong: "is only 600"},
		"of a host unheard":   {takes: 1500, unknown: true, want: 1300},
		"less than unheard":   {takes: 1320, unknown: true, want: 1270},
		"immense":             {takes: 1 << 40, declared: 8950, want: 8950},
		"declared, not heard": {takes: 1500, declared: 1450, unknown: true, want: 1450},
	} {
		s, hosts := spanning()
		s.Networks[0].MTU, s.Nodes[0].NICs, s.Nodes[1].NICs = c.declared, s.Nodes[0].NICs[:1], s.Nodes[1].NICs[:1]
		for i := range hosts {
			hosts[i].Addresses[1].MTU, hosts[i].Addresses[2].MTU = 9000, 9000
		}
		hosts[1].Addresses[1].MTU, hosts[1].Addresses[2].MTU = c.takes, c.takes
		if c.ipv6 {
			for i := range s.Hosts {
				s.Hosts[i].Underlay, _ = netip.ParseAddr("2001:db8::" + string(rune('1'+i)))
			}
		}
		if c.unknown { // the former MTU applies
			hosts[2] = observe.Host{Name: "sv3", Unknown: true}
			for i, mtu := range []int{1300, 1400} { // the other host has not been updated yet
				hosts[i].Networks = []observe.Network{{Network: spec.Network{Site: "toykat", Name: "lan", MTU: mtu,
					VXLAN: spec.VXLAN{ID: 1}}}}
			}
			hosts[0].Nodes = []observe.Node{{Node: spec.Node{Name: "a", ID: 11, Engine: "fake"}}}
		}
		p, err := Up(s, hosts, Goal{})
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		for _, step := range p.Steps {
			if step.Kind == MakeNetwork && step.Network.MTU != c.want || step.Kind == CreateNode &&
				step.Node.NICs[0].MTU != c.want {
				t.Errorf("%s: %s has another MTU than %d", what, step.Subject, c.want)
			}
		}
	}
}

// TestUnderlay: the address at which others reach a host is declared or derived. If it is unclear
// or impossible, this is reported.
func TestUnderlay(t *testing.T) {
	for what, c := range map[string]struct {
		change func(s *site.Site, hosts []observe.Host)
		wrong  string
	}{
		// Derived, as the only address on a subnet of the others.
		"a host by its name": {func(s *site.Site, _ []observe.Host) { s.Hosts[2].Underlay = netip.Addr{} }, ""},
		"several addresses beside them": {func(_ *site.Site, hosts []observe.Host) {
			hosts[0].Addresses[0].Prefix = "10.8.1.101/24"
		}, `underlay = "10.8.1.1" in [host.sv1]`},
		"none beside them": {func(_ *site.Site, hosts []observe.Host) {
			hosts[0].Addresses = hosts[0].Addresses[:1]
		}, "sv1 has several addresses at which they might reach it"},
		"not its own": {func(s *site.Site, _ []observe.Host) { s.Hosts[1].Address = "10.8.1.77" },
			"no interface of sv2 has the address 10.8.1.77"},
		"the same": {func(s *site.Site, hosts []observe.Host) {
			s.Hosts[2].Underlay = netip.MustParseAddr("10.8.1.2")
			hosts[2].Addresses[1].Prefix = "10.8.1.2/24"
		}, "have the same underlay address 10.8.1.2"},
		"of two kinds": {func(s *site.Site, _ []observe.Host) {
			s.Hosts[0].Underlay, s.Hosts[2].Underlay = netip.MustParseAddr("10.8.1.1"), netip.MustParseAddr("2001:db8::3")
		}, "some reached by IPv4 and some by IPv6"},
		"no addresses at all": {func(_ *site.Site, hosts []observe.Host) {
			hosts[1].Addresses = []observe.Address{{Prefix: "nonsense", MTU: 1500}, {Prefix: "10.8.1.2/24", MTU: -1}}
		}, "no interface of sv2 has"},
		"a host by its name, unheard": {func(s *site.Site, hosts []observe.Host) {
			s.Hosts[2].Underlay, hosts[2] = netip.Addr{}, observe.Host{Name: "sv3", Unknown: true}
		}, "underlay"},
	} {
		s, hosts := spanning()
		c.change(s, hosts)
		_, err := Up(s, hosts, Goal{})
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) &&
			(err == nil || !strings.Contains(cures(err), c.wrong)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for text, want := range map[string]string{"local": "", "ops@10.8.1.2:2222": "10.8.1.2", "10.8.1.2": "10.8.1.2",
		"root@[2001:db8::1]": "2001:db8::1", "[2001:db8::1]:22": "2001:db8::1", "ops@sv2:22": "", "": ""} {
		if at := (site.Host{Address: text}).UnderlayAddress(); at.IsValid() != (want != "") || at.IsValid() &&
			at.String() != want {
			t.Errorf("%q is at %s", text, at)
		}
	}
}

// TestUnderlayWas: if a host does not answer and the site does not declare its address, the others'
// records determine it, if they all agree.
func TestUnderlayWas(t *testing.T) {
	s, hosts := spanning()
	s.Hosts[2].Underlay = netip.Addr{}
	all := made(t, s, hosts, Goal{})
	for i := range hosts {
		for where, n := range all {
			if strings.HasPrefix(where, hosts[i].Name) {
				hosts[i].Networks = append(hosts[i].Networks, observe.Network{Network: n})
			}
		}
		hosts[i].Nodes = []observe.Node{{Node: spec.Node{Name: string(rune('a' + i)), ID: 11 + i, Engine: "fake"}}}
	}
	hosts[2] = observe.Host{Name: "sv3", Unknown: true}
	if changed := made(t, s, hosts, Goal{}); len(changed) != 0 {
		t.Errorf("without a host, networks become %v", changed)
	}
	lan := slices.IndexFunc(hosts[1].Networks, func(n observe.Network) bool { return n.Name == "lan" })
	hosts[1].Networks[lan].VXLAN.Peers = strings.Replace(hosts[1].Networks[lan].VXLAN.Peers, "10.8.1.3", "10.8.1.66", 1)
	if _, err := Up(s, hosts, Goal{}); err == nil ||
		!strings.Contains(err.Error(), "sv3 has several addresses at which they might reach it") {
		t.Errorf("hosts disagree on it: %v", err)
	}
}

// TestEncrypt: on an encrypted network, each host is told the keys and addresses of the others. It
// has an additional inner address, and the MTU leaves room for the headers. A key that is unknown,
// invalid or that of another host is reported.
func TestEncrypt(t *testing.T) {
	s, hosts := spanning()
	s.Networks[0].Encrypt = true
	key := func(i int) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{byte(i + 1)}, 32)) }
	for i := range hosts {
		hosts[i].Key = key(i)
	}
	all := made(t, s, hosts, Goal{})
	inner := func(i int) netip.Addr {
		return site.InnerAddress("toykat", "lan", netip.AddrFrom4([4]byte{10, 8, 1, byte(i)}))
	}
	lan := all["sv1 lan"]
	peers, err := lan.VXLAN.ParsePeers()
	if err != nil || len(peers) != 2 || lan.VXLAN.Key != key(0) || lan.VXLAN.Local != inner(1).String() ||
		lan.MTU != 1350 || inner(1) == inner(2) {
		t.Errorf("the network is %+v (%v)", lan, err)
	}
	for _, p := range peers {
		if i := int(p.Endpoint.As4()[3]); p.Address != inner(i) || p.Key != key(i-1) || len(p.MACs) != 1 {
			t.Errorf("a host is told of %+v", p)
		}
	}
	if n := all["sv1 data"]; n.VXLAN.Key != "" || strings.Contains(n.VXLAN.Peers, "|") {
		t.Errorf("a network that is not encrypted is %+v", n)
	}
	joints, err := overlay.JoinLive(s, hosts)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range joints.Paths() {
		if !w.At.Is4() || w.Size != 1500 {
			t.Errorf("between hosts is the way %+v", w)
		}
	}

	// The others have recorded the key of a host that does not answer.
	unheard := slices.Clone(hosts)
	for i := range unheard[:2] {
		for where, n := range all {
			if strings.HasPrefix(where, unheard[i].Name) {
				unheard[i].Networks = append(unheard[i].Networks, observe.Network{Network: n})
			}
		}
		unheard[i].Nodes = []observe.Node{{Node: spec.Node{Name: string(rune('a' + i)), ID: 11 + i, Engine: "fake"}}}
	}
	unheard[2] = observe.Host{Name: "sv3", Unknown: true}
	if changed := made(t, s, unheard, Goal{}); len(changed) != 0 {
		t.Errorf("without a host, networks become %v", changed)
	}
	for what, wrong := range map[string]string{"": "the key of host sv2 is unknown", "x|y": "is unknown",
		key(1) + "\n": "is unknown", key(1)[:40]: "is unknown",
		key(0): "hosts sv1 and sv2 report the same key"} {
		hosts[1].Key = what
		if _, err := Up(s, hosts, Goal{}); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("a host has the key %q: %v", what, err)
		}
	}
}

// TestWireCut: a host that has lost its address together with the wire continues with the former
// settings of its networks.
func TestWireCut(t *testing.T) {
	s, hosts := spanning()
	all := made(t, s, hosts, Goal{})
	for i := range hosts {
		for where, n := range all {
			if strings.HasPrefix(where, hosts[i].Name) {
				hosts[i].Networks = append(hosts[i].Networks, observe.Network{Network: n})
			}
		}
		hosts[i].Nodes = []observe.Node{{Node: spec.Node{Name: string(rune('a' + i)), ID: 11 + i, Engine: "fake"}}}
	}
	hosts[0].Addresses = hosts[0].Addresses[:1]
	s.Hosts[0].Underlay = netip.MustParseAddr("10.8.1.1")
	hosts[1], hosts[2] = observe.Host{Name: "sv2", Unknown: true}, observe.Host{Name: "sv3", Unknown: true}
	if changed := made(t, s, hosts, Goal{}); len(changed) != 0 {
		t.Errorf("networks become %v", changed)
	}
	s.Hosts[0].Underlay = netip.MustParseAddr("10.8.1.9")
	if _, err := Up(s, hosts, Goal{}); err == nil ||
		!strings.Contains(err.Error(), "no interface of sv1 has the address 10.8.1.9") {
		t.Errorf("an address that it never had: %v", err)
	}
}

// TestSpanQuarantine: a network on host interfaces is on bridges in quarantine. These are joined if
// the wire's MTU leaves room, and otherwise this is reported.
func TestSpanQuarantine(t *testing.T) {
	for mtu, want := range map[int]string{0: "mtu 1500 is too large between hosts sv1 and sv2 and sv3", 1450: "",
		1451: "mtu 1451 is too large"} {
		s, hosts := spanning()
		for i := range s.Networks {
			s.Networks[i].Kind, s.Networks[i].Interface, s.Networks[i].MTU = site.Macvlan, "eth0", mtu
		}
		d := newPlanBuilder(s, hosts, Goal{})
		d.Homes = map[string]string{"a": "sv1", "b": "sv2", "c": "sv3"}
		n, err := newNetworkPlanner(d, hosts)
		if err != nil || len(n.spans) != 0 || len(d.Warnings) != 0 {
			t.Errorf("live, %v is joined, with warnings %q (%v)", n.spans, d.Warnings, err)
		}
		s.Stage = 700
		d = newPlanBuilder(s, hosts, Goal{})
		d.Homes = map[string]string{"a": "sv1", "b": "sv2", "c": "sv3"}
		n, err = newNetworkPlanner(d, hosts)
		if joined := want == ""; err != nil || joined != (len(n.spans) == 2) || joined != (len(d.Warnings) == 0) ||
			!strings.Contains(strings.Join(d.Warnings, " "), want) {
			t.Errorf("mtu %d: in quarantine, %v is joined, with warnings %q (%v)", mtu, n.spans, d.Warnings, err)
		}
		if want == "" && n.spans.MTUs()["lan"] != 1450 {
			t.Errorf("in quarantine the MTU is %d", n.spans.MTUs()["lan"])
		}
	}
}

// TestNumbersClash: two networks with the same VXLAN id are reported.
func TestNumbersClash(t *testing.T) {
	s, hosts := spanning()
	d := newPlanBuilder(s, hosts, Goal{})
	d.Homes = map[string]string{"a": "sv1", "b": "sv2", "c": "sv3"}
	seen := map[int]string{}
	for i := 0; ; i++ { // by the birthday paradox after some thousands
		name := "net" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + strings.Repeat("y", i%11) +
			netip.AddrFrom4([4]byte{0, byte(i >> 16), byte(i >> 8), byte(i)}).String()
		other, found := seen[site.VNI("toykat", name)]
		if !found {
			seen[site.VNI("toykat", name)] = name
			continue
		}
		for i, n := range []string{name, other} {
			s.Networks[i].Name, s.Nodes[0].NICs[i].Network, s.Nodes[1].NICs[i].Network = n, n, n
		}
		s.Nodes[2].NICs = nil
		break
	}
	if _, err := newNetworkPlanner(d, hosts); err == nil || !strings.Contains(err.Error(), "the same VXLAN number") {
		t.Errorf("of networks %s and %s: %v", s.Networks[0].Name, s.Networks[1].Name, err)
	}
}

func cures(err error) string {
	var all []string
	for _, p := range problem.All(err) {
		all = append(all, p.Cure)
	}
	return strings.Join(all, "\n")
}
