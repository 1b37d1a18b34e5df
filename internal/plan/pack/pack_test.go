package pack_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/pack"
	"orrery/internal/site"
	"orrery/internal/site/inventory"
	"orrery/internal/site/spec"
)

// declared is a site of two nodes on two hosts and one without a host, as a release declares it.
func declared(number int) *site.Site {
	s := &site.Site{
		Name: "karoo", Hosts: []site.Host{{Name: "sv1"}, {Name: "sv2", Address: "sv2"}},
		Images:   []site.Image{{Name: "debian", Suite: "bookworm"}},
		Networks: []site.Network{{Name: "lan", Subnet: netip.MustParsePrefix("10.0.0.0/24")}},
		Secrets:  []site.Secret{{Name: "token"}},
		Roles: []site.Role{{Name: "web", Services: []string{"web.service"}, Secrets: []site.SecretUse{{Name: "token"}},
			Files: []site.File{{Path: "/etc/key", Template: "k", Content: []byte(`key={{secret "token"}}`)}}}},
	}
	for i, name := range []string{"db", "web", "anywhere"} {
		s.Nodes = append(s.Nodes, site.Node{
			Name: name, ID: 11 + i, Image: "debian", Engine: "fake", Host: []string{"sv1", "sv2", ""}[i],
			Roles: []string{"web"}, Release: number,
			NICs: []site.NIC{{Network: "lan", Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(11 + i)})}},
		})
	}
	return s
}

func spelt(t *testing.T, s *site.Site, name string) *spec.Node {
	t.Helper()
	n, _ := s.Node(name)
	made, err := spec.NewBuilder(s).Node(n)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// asLive returns a function that returns a site as the live one.
func asLive(s *site.Site) func() (*site.Site, error) {
	return func() (*site.Site, error) { return s, nil }
}

// TestWanted: an existing node must be as its release declares it. If it is not declared any more,
// nothing is wanted.
func TestWanted(t *testing.T) {
	s := declared(0)
	p := pack.New(s, nil)
	p.AddRelease(700, declared(700))
	for what, c := range map[string]struct {
		has  *spec.Node
		want int // id of the wanted node, or 0 if nothing is wanted
	}{
		"declared":                       {spelt(t, s, "web"), 12},
		"declared by a release":          {spelt(t, declared(700), "web"), site.FullID(700, 12)},
		"of a release that nobody knows": {&spec.Node{Name: "web", Release: 701}, 0},
		"not declared":                   {&spec.Node{Name: "old"}, 0},
		"not declared by a release":      {&spec.Node{Name: "old", Release: 700}, 0},
	} {
		n, d, err := p.Desired(c.has)
		if err != nil || (n == nil) != (c.want == 0) || (d == nil) != (n == nil) || n != nil &&
			(n.ID != c.want || d.Node != "web" || d.Release != c.has.Release) {
			t.Errorf("%s: %+v, %+v, %v", what, n, d, err)
		}
	}
	broken := declared(0)
	broken.Roles[0].Files[0].Content = []byte("{{.Nothing}}")
	if n, _, err := pack.New(broken, nil).Desired(spelt(t, s, "web")); err == nil {
		t.Errorf("with a template that is wrong it is %+v", n)
	}
}

// TestPack: a packed step has the parts of the live site that its host needs, and no more.
func TestPack(t *testing.T) {
	s, of := declared(0), declared(700)
	p := pack.New(s, nil)
	p.AddRelease(700, of)
	p.SetHomes(map[string]string{"db": "sv1", "web": "sv2", "anywhere": "sv2"})
	lost := errors.New("a host is silent")
	old := &spec.Node{Name: "old", ID: 99}
	staged := declared(700)
	staged.Stage = 700
	told := func(n *inventory.PeerInfo) (ids []int) {
		for _, one := range n.Recipients {
			ids = append(ids, one.ID)
		}
		return ids
	}
	for what, c := range map[string]struct {
		step   plan.Step
		live   func() (*site.Site, error)
		duties bool
		told   []int // ids of the nodes whose names are written
		wrong  string
	}{
		"a start": {step: plan.Step{Kind: plan.StartNode, Host: "sv2", Node: spelt(t, s, "web")},
			duties: true, told: []int{12}},
		"a configuration": {step: plan.Step{Kind: plan.ConfigureNode, Host: "sv2", Node: spelt(t, s, "web")},
			duties: true, told: []int{12}},
		"a check": {step: plan.Step{Kind: plan.CheckNode, Host: "sv2", Node: spelt(t, s, "web")},
			duties: true},
		"of a release": {step: plan.Step{Kind: plan.StartNode, Host: "sv2", Node: spelt(t, of, "web")},
			live: asLive(of), duties: true, told: []int{site.FullID(700, 12)}},
		"in quarantine": {step: plan.Step{Kind: plan.StartNode, Host: "sv2", Node: spelt(t, staged, "web")},
			duties: true, told: []int{site.FullID(700, 12)}},
		"what is not declared starts": {step: plan.Step{Kind: plan.StartNode, Host: "sv2", Node: old}},
		"and is not configured": {step: plan.Step{Kind: plan.ConfigureNode, Host: "sv2", Node: old},
			wrong: "node old is not declared"},
		"names":                 {step: plan.Step{Kind: plan.WriteNames, Host: "sv2"}, told: []int{12, 13}},
		"names of another host": {step: plan.Step{Kind: plan.WriteNames, Host: "sv1"}, told: []int{11}},
		"a stop":                {step: plan.Step{Kind: plan.StopNode, Host: "sv2", Old: spelt(t, s, "web")}},
		"names of nobody knows what": {step: plan.Step{Kind: plan.WriteNames, Host: "sv2"},
			live: func() (*site.Site, error) { return nil, lost }, wrong: lost.Error()},
		"a start of nobody knows what": {step: plan.Step{Kind: plan.StartNode, Host: "sv2", Node: spelt(t, s, "web")},
			live: func() (*site.Site, error) { return nil, lost }, wrong: lost.Error()},
	} {
		if c.live == nil {
			c.live = asLive(s)
		}
		got, err := p.Pack(&c.step, c.live)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		if err != nil || (got.Duties != nil) != c.duties || (got.Tell != nil) != (c.told != nil) || got.Tell != nil &&
			!slices.Equal(told(got.Tell), c.told) {
			t.Errorf("%s: %+v, %v", what, got, err)
			continue
		}
		if got.Tell == nil || got.Node != nil && got.Node.Staged {
			continue
		}
		for _, peer := range got.Tell.Peers { // this host must not make SSH host keys for nodes of other hosts
			if home := map[string]string{"db": "sv1", "web": "sv2", "anywhere": "sv2"}[peer.Node]; home != c.step.Host {
				t.Errorf("%s: host %s is told of the keys of node %s", what, c.step.Host, peer.Node)
			}
		}
		if c.step.Duties != nil || c.step.Tell != nil {
			t.Errorf("%s: the step of the plan has changed", what)
		}
	}
}

// TestPlaces: nodes without a declared host are where a plan places them or, without a plan, where
// they were observed.
func TestPlaces(t *testing.T) {
	p := pack.New(declared(0), nil)
	at := func() string {
		n, _ := p.SiteOf(0).Node("anywhere")
		return n.Host
	}
	if host := at(); host != "" {
		t.Errorf("before anything was seen, it is on %q", host)
	}
	p.SetObservedHomes(map[string]string{"anywhere": "sv1"})
	if host := at(); host != "sv1" {
		t.Errorf("it was seen on sv1, and is on %q", host)
	}
	p.SetObservedHomes(map[string]string{"anywhere": "sv2"})
	if host := at(); host != "sv2" {
		t.Errorf("it was seen on sv2 then, and is on %q", host)
	}
	p.SetHomes(map[string]string{"anywhere": "sv1"})
	if host := at(); host != "sv1" {
		t.Errorf("it is placed on sv1, and is on %q", host)
	}
	if n, _ := p.WithoutCaches().SiteOf(0).Node("anywhere"); n.Host != "sv1" {
		t.Errorf("afresh it is on %q", n.Host)
	}
	p.SetHomes(nil)
	if host := at(); host != "sv2" {
		t.Errorf("no plan places it, and it is on %q", host)
	}
}

// TestLivePacked: in a quarantine, the live site is the quarantine. Otherwise each node is of its
// live release.
func TestLivePacked(t *testing.T) {
	p := pack.New(declared(0), nil)
	p.AddRelease(700, declared(700))
	now, err := p.LiveSite(observe.Releases{Active: map[string]int{"web": 700}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"db": 0, "web": 700} {
		if n, _ := now.Node(name); n.Release != want {
			t.Errorf("node %s is of release %d", name, n.Release)
		}
	}
	if _, err := p.LiveSite(observe.Releases{Active: map[string]int{"web": 701}}); err == nil {
		t.Error("a release that nobody knows is live")
	}
	staged := declared(700)
	staged.Stage = 700
	p.SetSite(staged)
	if p.Site() != staged {
		t.Error("another site is used")
	}
	if now, err := p.LiveSite(observe.Releases{Active: map[string]int{"web": 701}}); err != nil || now != staged {
		t.Errorf("in quarantine: %+v, %v", now, err)
	}
}

// TestSecretText: a file with secrets is rendered for a declared node, with the given values.
func TestSecretText(t *testing.T) {
	p := pack.New(declared(0), nil)
	value := func(_ context.Context, name, _ string) (string, error) { return "the " + name, nil }
	text, err := p.SecretText(t.Context(), spec.SecretText{Node: "web", Role: "web", Path: "/etc/key"}, value)
	if err != nil || string(text) != "key=the token" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := p.SecretText(t.Context(), spec.SecretText{Node: "old", Role: "web", Path: "/etc/key"},
		value); err == nil || !strings.Contains(err.Error(), "node old is not declared") {
		t.Errorf("of a node that is not declared: %v", err)
	}
	lost := errors.New("a host is silent")
	if _, err := p.SecretText(t.Context(), spec.SecretText{Node: "web", Role: "web", Path: "/etc/key"},
		func(context.Context, string, string) (string, error) { return "", lost }); err == nil ||
		!strings.Contains(err.Error(), lost.Error()) {
		t.Errorf("without a value: %v", err)
	}
}
