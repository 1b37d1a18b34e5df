package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/observe"
	"orrery/internal/observe/sriov"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// paper is a set of hosts that simulate steps. It is strict: a step that a host must not do is an
// error.
type paper struct {
	hosts []observe.Host
	came  map[string]bool // host and id: received there and not started yet
	sent  int
}

// movable is the spanning site with placed nodes, up.
func movable() (*site.Site, *paper) {
	s, hosts := spanning()
	for i := range s.Nodes {
		s.Nodes[i].Autostart = true
		s.Nodes[i].Publish = webPort(8080 + uint16(i))
	}
	s.Networks[0].Gateway = netip.MustParseAddr("10.0.0.1")
	for i := range s.Networks {
		s.Networks[i].MTU = 1450 // whether it is on one host or on several
	}
	for i := range hosts {
		hosts[i].Engines = map[string]observe.Capabilities{"fake": {Move: true, MoveNIC: true, Keep: true}}
		hosts[i].Layers = map[string]bool{}
	}
	f := &paper{hosts: hosts, came: map[string]bool{}}
	p, err := Up(s, f.hosts, Goal{})
	if err != nil {
		panic(err)
	}
	if err := f.run(p, func([]int) int { return 0 }); err != nil {
		panic(err)
	}
	for i := range s.Nodes {
		s.Nodes[i].Host = ""
	}
	return s, f
}

// webPort returns a port of the host that leads to port 80 of a node.
func webPort(port uint16) []site.Publish {
	return []site.Publish{{Ports: site.PortRange{Proto: "tcp", First: port, Last: port}, NodePort: 80}}
}

// run does steps until choose returns -1. Each time, choose picks one of the steps that can be
// done.
func (f *paper) run(p *Plan, choose func(ready []int) int) error {
	done := map[int]bool{}
	for {
		var ready []int
		for n, s := range p.Steps {
			if !done[n] && !slices.ContainsFunc(s.Needs, func(need int) bool { return !done[need] }) {
				ready = append(ready, n)
			}
		}
		if len(ready) == 0 {
			return nil
		}
		i := choose(ready)
		if i < 0 {
			return nil
		}
		s := p.Steps[ready[i]]
		text, err := Encode(s)
		if err == nil {
			s, err = Decode(text)
		}
		if err == nil {
			err = f.do(s)
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", s.Host, s, err)
		}
		done[ready[i]] = true
	}
}

// beside adds a release of a node in quarantine beside it, and returns the site as the release
// declares it.
func (f *paper) beside(s *site.Site, name string, release int) *site.Site {
	of := *s
	of.Nodes = slices.Clone(s.Nodes)
	for i := range of.Nodes {
		of.Nodes[i].Release = release
	}
	apart := of
	apart.Stage = release
	n, _ := apart.Node(name)
	staged, err := spec.NewBuilder(&apart).Node(n)
	if err != nil {
		panic(err)
	}
	for i := range f.hosts {
		h := &f.hosts[i]
		if _, live := h.Node(name); live {
			h.Nodes = append(h.Nodes, observe.Node{Node: *staged, State: observe.Running, Configured: true})
			for _, network := range spec.NewBuilder(&apart).Networks() {
				h.Networks = append(h.Networks, observe.Network{Network: network})
			}
			break
		}
	}
	return &of
}

// live returns the host on which a node is live.
func (f *paper) live(name string) (*observe.Node, string) {
	for i := range f.hosts {
		for j := range f.hosts[i].Nodes {
			if n := &f.hosts[i].Nodes[j]; n.Name == name && !n.Staged {
				return n, f.hosts[i].Name
			}
		}
	}
	return nil, ""
}

func (f *paper) host(name string) *observe.Host {
	return &f.hosts[slices.IndexFunc(f.hosts, func(h observe.Host) bool { return h.Name == name })]
}

func (f *paper) do(s *Step) error {
	h := f.host(s.Host)
	id := 0
	for _, n := range []*spec.Node{s.Node, s.Old} {
		if n != nil {
			id = n.ID
		}
	}
	node, found := h.NodeByID(id)
	arrival, arrives := h.IncomingMove(id)
	drop := func() {
		h.IncomingMoves = slices.DeleteFunc(h.IncomingMoves, func(a observe.IncomingMove) bool { return a.ID == id })
	}
	given := slices.IndexFunc(h.OutgoingMoves, func(g observe.OutgoingMove) bool { return g.ID == id })
	switch s.Kind {
	case BuildLayer, FetchLayer:
		h.Layers[s.Layer.Digest] = true
	case PrepareHost:
		h.Settings = s.Settings
	case MakeNetwork:
		h.Networks = slices.DeleteFunc(h.Networks, func(n observe.Network) bool {
			return n.Name == s.Subject &&
				n.Site == s.Network.Site
		})
		h.Networks = append(h.Networks, observe.Network{Network: *s.Network})
	case RemoveNetwork:
		for _, n := range h.Nodes {
			if n.Runs() && isOn(&n.Node, s.Network) && n.Staged == (s.Network.Site != n.Site) {
				return fmt.Errorf("node %s is on it", n.Name)
			}
		}
		h.Networks = slices.DeleteFunc(h.Networks, func(n observe.Network) bool {
			return n.Name == s.Subject &&
				n.Site == s.Network.Site
		})
	case WriteNames:
		h.Names = s.Names
	case ForgetNames:
		h.Names = ""
	case CreateNode:
		if found || given >= 0 || arrives {
			return fmt.Errorf("it is there already")
		}
		h.Nodes = append(h.Nodes, observe.Node{Node: *s.Node, State: observe.Stopped})
	case StartNode:
		if !found {
			return fmt.Errorf("it is not there")
		}
		node.State, node.Resume = observe.Running, false
		delete(f.came, fmt.Sprint(h.Name, id))
	case StopNode:
		if !found {
			return fmt.Errorf("it is not there")
		}
		node.State, node.Resume = observe.Stopped, s.Peer != ""
	case ConfigureNode:
		node.Configured, node.Config = true, s.Node.Config
	case CheckNode:
		node.Proven = s.Node.Config.Health
	case ReshapeNode, LimitNode:
		config := node.Config
		node.Node = *s.Node
		node.Config = config
	case DestroyNode:
		h.Nodes = slices.DeleteFunc(h.Nodes, func(n observe.Node) bool { return n.ID == id })
	case CopyNode:
		if found || given >= 0 {
			return fmt.Errorf("it is there already")
		}
		if _, here := f.host(s.Peer).NodeByID(id); !here {
			return fmt.Errorf("it is not on host %s", s.Peer)
		}
		drop()
		h.IncomingMoves = append(h.IncomingMoves, observe.IncomingMove{Name: s.Subject, ID: s.Node.ID, From: s.Peer})
	case SendNode:
		if from, here := f.host(s.Peer).NodeByID(id); !here || from.Runs() || !arrives {
			return fmt.Errorf("it runs, or nothing has come")
		}
		f.sent++
		arrival.Whole, arrival.Sum = true, fmt.Sprint("sum ", f.sent)
	case HandOverNode:
		a, whole := f.host(s.Peer).IncomingMove(id)
		if !found || node.Runs() || !whole || !a.Whole {
			return fmt.Errorf("it runs, or not all of it has come")
		}
		h.OutgoingMoves = append(h.OutgoingMoves, observe.OutgoingMove{Node: *node, To: s.Peer, Sum: a.Sum})
		h.Nodes = slices.DeleteFunc(h.Nodes, func(n observe.Node) bool { return n.ID == id })
	case ReceiveNode:
		from := f.host(s.Peer)
		i := slices.IndexFunc(from.OutgoingMoves, func(g observe.OutgoingMove) bool { return g.ID == id })
		if i < 0 || !arrives || !arrival.Whole ||
			from.OutgoingMoves[i].Sum != arrival.Sum || from.OutgoingMoves[i].To != h.Name || found {
			return fmt.Errorf("nobody has given it, or not all of it has come")
		}
		came := receivedNode(s.Node, &observe.Node{Node: *s.Old, Configured: s.Configured, Active: s.Active})
		came.Resume = s.Runs
		h.Nodes = append(h.Nodes, *came)
		f.came[fmt.Sprint(h.Name, id)] = true
		drop()
	case CleanUpNode:
		if given < 0 {
			return fmt.Errorf("it was not given")
		}
		h.OutgoingMoves = slices.Delete(h.OutgoingMoves, given, given+1)
	case ReclaimNode:
		if given < 0 {
			return fmt.Errorf("it was not given")
		}
		reclaimed := h.OutgoingMoves[given].Node
		reclaimed.State = observe.Stopped
		h.Nodes, h.OutgoingMoves = append(h.Nodes, reclaimed), slices.Delete(h.OutgoingMoves, given, given+1)
	case DiscardNode:
		if found && !f.came[fmt.Sprint(h.Name, id)] {
			return fmt.Errorf("it has run here")
		}
		h.Nodes = slices.DeleteFunc(h.Nodes, func(n observe.Node) bool { return n.ID == id })
		drop()
	case RestoreHost:
	default:
		return fmt.Errorf("nobody does such a step")
	}
	return f.one(id)
}

// one checks that a node has one holder: at most one host owns it, and while one does, no host has
// given it away that could take it back.
func (f *paper) one(id int) error {
	var holders []string
	for i := range f.hosts {
		if _, ok := f.hosts[i].NodeByID(id); ok {
			holders = append(holders, f.hosts[i].Name)
		}
	}
	if len(holders) > 1 {
		return fmt.Errorf("it is on hosts %v", holders)
	}
	return nil
}

// seen returns the hosts as observed, without the unknown ones.
func (f *paper) seen(unknown ...string) []observe.Host {
	all := slices.Clone(f.hosts)
	for i := range all {
		if slices.Contains(unknown, all[i].Name) {
			all[i] = observe.Host{Name: all[i].Name, Unknown: true}
			continue
		}
		all[i].Nodes = slices.Clone(all[i].Nodes)
		all[i].OutgoingMoves = slices.Clone(all[i].OutgoingMoves)
		all[i].IncomingMoves = slices.Clone(all[i].IncomingMoves)
		all[i].Networks = slices.Clone(all[i].Networks)
	}
	return all
}

func told(p *Plan) string {
	var b strings.Builder
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "%d %s: %s %v\n", s.N, s.Host, s, s.Needs)
	}
	return b.String()
}

// TestMove: a node moves with its data, and all hosts on its networks know its new host.
func TestMove(t *testing.T) {
	s, f := movable()
	p, err := MoveNodes(s, f.seen(), Goal{}, map[string]string{"a": "sv3"})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []Kind
	for _, step := range p.Steps {
		if step.Subject == "a" {
			kinds = append(kinds, step.Kind)
		}
	}
	if want := []Kind{CopyNode, StopNode, SendNode, HandOverNode, ReceiveNode, StartNode,
		CleanUpNode}; !slices.Equal(kinds,
		want) {
		t.Errorf("the steps are %v, not %v\n%s", kinds, want, told(p))
	}
	if err := f.run(p, func([]int) int { return 0 }); err != nil {
		t.Fatal(err)
	}
	if n, ok := f.host("sv3").Node("a"); !ok || n.State != observe.Running {
		t.Errorf("host sv3 has %+v", n)
	}
	for _, plans := range []func() (*Plan, error){
		func() (*Plan, error) { return Up(s, f.seen(), Goal{}) },
		func() (*Plan, error) { return MoveNodes(s, f.seen(), Goal{}, map[string]string{"a": "sv3"}) },
	} {
		if again, err := plans(); err != nil || !again.Empty() {
			t.Errorf("afterwards there is to do (%v)\n%s", err, told(again))
		}
	}
}

// TestMovePublished: the ports of a host lead to a node wherever it is. Two nodes of one host cannot
// both have a port.
func TestMovePublished(t *testing.T) {
	s, f := movable()
	s.Nodes[2].Publish = webPort(8080)
	p, err := Up(s, f.seen(), Goal{})
	if err == nil {
		err = f.run(p, func([]int) int { return 0 })
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = MoveNodes(s, f.seen(), Goal{}, map[string]string{"a": "sv3"})
	if err == nil || !strings.Contains(err.Error(), "port tcp/8080 of node") {
		t.Errorf("two nodes have a port of host sv3: %v", err)
	}
	s.Nodes[2].Publish = nil
	p, err = Up(s, f.seen(), Goal{})
	if err == nil {
		err = f.run(p, func([]int) int { return 0 })
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err = MoveNodes(s, f.seen(), Goal{}, map[string]string{"a": "sv3"})
	if err == nil {
		err = f.run(p, func([]int) int { return 0 })
	}
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{"sv1": "",
		"sv2": "b=8081:80/tcp>10.0.0.12", "sv3": "a=8080:80/tcp>10.0.0.11"} {
		for _, n := range f.host(host).Networks {
			if n.Name == "lan" && n.Publish != want {
				t.Errorf("host %s publishes %q, not %q", host, n.Publish, want)
			}
		}
	}
}

// TestMoveGoesOn: received data of a node is kept if the node moves to the same host again, and
// removed if it moves to another.
func TestMoveGoesOn(t *testing.T) {
	s, f := movable()
	f.hosts[2].IncomingMoves = []observe.IncomingMove{{Name: "a", ID: f.hosts[0].Nodes[0].ID, From: "sv1"}}
	for to, dropped := range map[string]bool{"sv3": false, "sv2": true} {
		p, err := MoveNodes(s, f.seen(), Goal{}, map[string]string{"a": to})
		if err != nil {
			t.Fatal(err)
		}
		if drops := slices.ContainsFunc(p.Steps, func(s *Step) bool { return s.Kind == DiscardNode }); drops != dropped {
			t.Errorf("to %s, it is removed: %v\n%s", to, drops, told(p))
		}
	}
}

// TestMoveRefused: a node that is tied to its host is not moved, nor one with unknown facts.
func TestMoveRefused(t *testing.T) {
	for want, change := range map[string]func(s *site.Site, f *paper) []observe.Host{
		"is declared on host sv1": func(s *site.Site,
			_ *paper) []observe.Host {
			s.Nodes[0].Host = "sv1"
			return nil
		},
		"no host is called":      func(_ *site.Site, f *paper) []observe.Host { return f.seen()[:2] },
		"whose state is unknown": func(_ *site.Site, f *paper) []observe.Host { return f.seen("sv3") },
		"may be on host sv1":     func(_ *site.Site, f *paper) []observe.Host { return f.seen("sv1") },
		"does not exist on any host": func(_ *site.Site,
			f *paper) []observe.Host {
			f.hosts[0].Nodes = nil
			return nil
		},
		"cannot move nodes": func(_ *site.Site, f *paper) []observe.Host {
			f.hosts[2].Engines["fake"] = observe.Capabilities{}
			return nil
		},
		"it is incomplete": func(_ *site.Site, f *paper) []observe.Host {
			f.hosts[0].Nodes[0].State = observe.Broken
			return nil
		},
		"would be recreated: base image changed": func(_ *site.Site, f *paper) []observe.Host {
			f.hosts[0].Nodes[0].Base = "other"
			return nil
		},
		"its release 7 on host sv2 cannot move with it: its site directory as staged is unknown": func(_ *site.Site,
			f *paper) []observe.Host {
			f.hosts[1].Nodes = append(f.hosts[1].Nodes,
				observe.Node{Node: spec.Node{Name: "a", ID: 7011, Release: 7, Staged: true}})
			return nil
		},
		"uses the interface eth7": func(s *site.Site, _ *paper) []observe.Host {
			s.Nodes[0].NICs[1].Interface = "eth7"
			return nil
		},
		"PCI functions": func(s *site.Site, _ *paper) []observe.Host {
			s.Nodes[0].VM.PCI = []string{"0000:01:00.0"}
			return nil
		},
		"at /srv/data of its host": func(s *site.Site, _ *paper) []observe.Host {
			hold(s, site.Volume{Path: "/srv/data"})
			return nil
		},
		"shared with other nodes": func(s *site.Site, _ *paper) []observe.Host {
			hold(s, site.Volume{Shared: true})
			return nil
		},
		"does not have 9 cpus and 16 MiB free": func(s *site.Site, _ *paper) []observe.Host {
			s.Nodes[0].Limits.Cpus, s.Nodes[0].Limits.Memory = 9, 16<<20
			return nil
		},
	} {
		s, f := movable()
		hosts := change(s, f)
		if hosts == nil {
			hosts = f.seen()
		}
		_, err := MoveNodes(s, hosts, Goal{}, map[string]string{"a": "sv3"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestMoveCompany: instances of other releases move before their node, and are stopped afterwards.
// The quarantine's networks are then removed from the first host. If only one of the two has moved,
// the other one follows.
func TestMoveCompany(t *testing.T) {
	s, f := movable()
	goal := Goal{Releases: map[int]*site.Site{0: s, 7: f.beside(s, "a", 7), 8: f.beside(s, "a", 8)}}
	to := map[string]string{"a": "sv3"}
	p, err := MoveNodes(s, f.seen(), goal, to)
	if err != nil {
		t.Fatal(err)
	}
	last := map[int]int{}
	for _, step := range p.Steps {
		switch step.Kind {
		case StopNode, ReceiveNode:
			last[step.Old.ID] = step.N
		}
	}
	stops := slices.IndexFunc(p.Steps, func(s *Step) bool { return s.Kind == StopNode && !s.Old.Staged })
	if len(last) != 3 || stops < last[7011] || stops < last[8011] {
		t.Errorf("the steps are\n%s", told(p))
	}
	if err := f.run(p, func([]int) int { return 0 }); err != nil {
		t.Fatal(err)
	}
	for _, release := range []int{7, 8} {
		if n, ok := f.host("sv3").NodeByID(site.FullID(release, 11)); !ok || n.State != observe.Stopped || !n.Configured ||
			!n.Staged {
			t.Errorf("host sv3 has %+v", n)
		}
	}
	if n, on := f.live("a"); on != "sv3" || n.State != observe.Running {
		t.Errorf("on host %s it is %+v", on, n)
	}
	for _, n := range f.host("sv1").Networks {
		if n.Site != s.Key() {
			t.Errorf("network %s of %s is still there", n.Name, n.Site)
		}
	}
	if p, err := MoveNodes(s, f.seen(), goal, to); err != nil || !p.Empty() {
		t.Errorf("afterwards there is to do (%v)\n%s", err, told(p))
	}
	at := f.host("sv3")
	i := slices.IndexFunc(at.Nodes, func(n observe.Node) bool { return n.Release == 7 })
	f.host("sv1").Nodes = append(f.host("sv1").Nodes, at.Nodes[i])
	at.Nodes = slices.Delete(at.Nodes, i, i+1)
	if p, err := Up(s, f.seen(), Goal{}); err != nil || !p.Empty() {
		t.Errorf("with a release of it elsewhere, up has to do (%v)\n%s", err, told(p))
	}
	p, err = MoveNodes(s, f.seen(), goal, to)
	if err != nil || len(p.DisturbedNodes()) > 0 {
		t.Fatalf("%v\n%s", err, told(p))
	}
	if err := f.run(p, func([]int) int { return 0 }); err != nil {
		t.Fatal(err)
	}
	if _, ok := at.NodeByID(7011); !ok {
		t.Errorf("it has not followed\n%s", told(p))
	}
	at.Nodes[slices.IndexFunc(at.Nodes, func(n observe.Node) bool { return n.Release == 7 })].Base = "other"
	if _, err := MoveNodes(s, f.seen(), goal, map[string]string{"a": "sv1"}); err == nil ||
		!strings.Contains(err.Error(), "cannot move with it: base image changed") {
		t.Errorf("of one that is not as its release declares it: %v", err)
	}
}

// hold adds a volume to the first node.
func hold(s *site.Site, v site.Volume) {
	v.Name = "data"
	s.Volumes = []site.Volume{v}
	s.Roles = []site.Role{{Name: "db", Volumes: []site.VolumeUse{{Name: "data", Path: "/data"}}}}
	s.Nodes[0].Roles = []string{"db"}
}

// TestMoveAfterKill: wherever a move is interrupted, and its continuation as well, a node has one
// holder at every moment. The next run of the move, or of up, brings it to the correct host,
// running if it ran.
func TestMoveAfterKill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, f := movable()
		stopped := rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "stopped")
		for i := range s.Nodes {
			if s.Nodes[i].Name == stopped {
				s.Nodes[i].Autostart = false
			}
		}
		for i := range f.hosts {
			if n, ok := f.hosts[i].Node(stopped); ok {
				n.State, n.Autostart = observe.Stopped, false
			}
		}
		moves := map[string]string{}
		for _, name := range []string{"a", "b", "c"} {
			if to := rapid.SampledFrom([]string{"", "sv1", "sv2", "sv3"}).Draw(t, "to"); to != "" {
				moves[name] = to
			}
		}
		goal := Goal{}
		beside := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "beside")
		if beside != "" {
			goal.Releases = map[int]*site.Site{0: s, 7: f.beside(s, beside, 7)}
		}
		ways := map[string]func(hosts []observe.Host) (*Plan, error){
			"move": func(hosts []observe.Host) (*Plan, error) { return MoveNodes(s, hosts, goal, moves) },
			"up":   func(hosts []observe.Host) (*Plan, error) { return Up(s, hosts, Goal{}) },
		}
		random := func(left int) func(ready []int) int {
			return func(ready []int) int {
				if left--; left < 0 {
					return -1
				}
				return rapid.IntRange(0, len(ready)-1).Draw(t, "step")
			}
		}
		for range rapid.IntRange(0, 4).Draw(t, "kills") {
			way := rapid.SampledFrom([]string{"move", "move", "up"}).Draw(t, "way")
			unknown := rapid.SampledFrom([]string{"", "", "sv1", "sv2", "sv3"}).Draw(t, "unknown")
			p, err := ways[way](f.seen(unknown))
			if err != nil {
				continue // refused, since a host is unknown
			}
			for _, step := range p.Steps {
				if step.Host == unknown {
					t.Fatalf("a step is planned on a host of which nothing is known: %s", step)
				}
			}
			if err := f.run(p, random(rapid.IntRange(0, 30).Draw(t, "kill after"))); err != nil {
				t.Fatalf("%v\n%s", err, told(p))
			}
		}
		last := rapid.SampledFrom([]string{"move", "up"}).Draw(t, "last")
		p, err := ways[last](f.seen())
		if err == nil {
			err = f.run(p, random(1000))
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, told(p))
		}
		for _, h := range f.hosts {
			if len(h.IncomingMoves) > 0 || len(h.OutgoingMoves) > 0 {
				t.Fatalf("host %s has %+v and %+v\nafter\n%s", h.Name, h.IncomingMoves, h.OutgoingMoves, told(p))
			}
		}
		for _, n := range s.Nodes {
			current, on := f.live(n.Name)
			if current != nil && (current.State == observe.Running) != (n.Name != stopped) {
				t.Fatalf("node %s is %s\nafter\n%s", n.Name, current.State, told(p))
			}
			holders := 0
			for i := range f.hosts {
				if _, ok := f.hosts[i].NodeByID(site.FullID(7, n.ID)); ok {
					holders++
					if last == "move" && moves[n.Name] != "" && on != f.hosts[i].Name {
						t.Fatalf("release 7 of node %s is on host %s\nafter\n%s", n.Name, f.hosts[i].Name, told(p))
					}
				}
			}
			if (holders == 1) != (n.Name == beside) {
				t.Fatalf("%d hosts have release 7 of node %s\nafter\n%s", holders, n.Name, told(p))
			}
			if on == "" || last == "move" && moves[n.Name] != "" && moves[n.Name] != on {
				t.Fatalf("node %s is on host %q\nafter\n%s", n.Name, on, told(p))
			}
		}
		if again, err := ways[last](f.seen()); err != nil || !again.Empty() {
			t.Fatalf("afterwards there is to do (%v)\n%s\nafter\n%s", err, told(again), told(p))
		}
		if again, err := Up(s, f.seen(), Goal{}); err != nil || !again.Empty() {
			t.Fatalf("afterwards up has to do (%v)\n%s\nafter\n%s", err, told(again), told(p))
		}
	})
}

// TestMoveFunction: a node gets a virtual function of the host to which it moves, which must have one.
func TestMoveFunction(t *testing.T) {
	s, f := movable()
	for i := range s.Nodes {
		s.Nodes[i].Publish = nil
	}
	for i := range s.Networks {
		n := &s.Networks[i]
		n.Kind, n.Interface, n.NAT = "sriov", "p0", false
	}
	for i := range f.hosts {
		f.hosts[i].Cards = []sriov.Card{{Address: fmt.Sprintf("0000:0%d:00.0", i), Interfaces: []string{"p0"}, Total: 8}}
	}
	p, err := Up(s, f.hosts, Goal{})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.run(p, func([]int) int { return 0 }); err != nil {
		t.Fatal(err)
	}
	moves := map[string]string{"a": "sv3"}
	if p, err = MoveNodes(s, f.seen(), Goal{}, moves); err != nil {
		t.Fatal(err)
	}
	for _, step := range p.Steps {
		if step.Kind == StartNode && step.Subject == "a" && !strings.HasPrefix(step.Node.NICs[0].Parent, "0000:02:00.0v") {
			t.Errorf("it starts with %+v", step.Node.NICs)
		}
	}
	f.hosts[2].Cards[0].Total = 0
	if _, err := MoveNodes(s, f.seen(), Goal{}, moves); err == nil ||
		!strings.Contains(err.Error(), "p0 of host sv3 can have no") {
		t.Error(err)
	}
}
