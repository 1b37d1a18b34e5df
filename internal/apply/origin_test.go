package apply

import (
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/plan/pack"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestRecognise: hosts with nodes of another site of this name are refused, whatever shows that.
// Hosts with nodes of this site are accepted on any machine.
func TestRecognise(t *testing.T) {
	host := func(origin string, nodes ...string) observe.Host {
		h := observe.Host{Origin: origin}
		for _, name := range nodes {
			h.Nodes = append(h.Nodes, observe.Node{Node: spec.Node{Name: name}})
		}
		return h
	}
	given := host("a1")
	given.OutgoingMoves = []observe.OutgoingMove{{Node: host("", "elsewhere").Nodes[0]}}
	const another = "another site that is called demo"
	for what, c := range map[string]struct {
		id       string
		a, b     observe.Host
		unknown  bool
		origin   string // the id that hosts get, or "new" for one that no site has
		mistaken string
	}{
		"new":                       {origin: "new"},
		"new, with an id":           {id: "a1", origin: "a1"},
		"new, and a host is silent": {unknown: true},
		"was there before ids were": {a: host("", "web"), origin: "new"},
		"and has one now":           {id: "a1", a: host("", "web"), origin: "a1"},
		"of one host":               {a: host("a1", "web"), origin: "a1"},
		"of two":                    {id: "a1", a: host("a1", "web"), b: host("a1", "db"), origin: "a1"},
		"one knows":                 {a: host("", "web"), b: host("a1", "db"), origin: "a1"},
		"another one":               {id: "a1", b: host("b2", "web"), mistaken: another},
		"another one, given away":   {id: "b2", b: given, mistaken: another},
		"another one was there":     {id: "a1", b: host("b2"), a: host("a1", "web"), origin: "a1"},
		"without id, was there":     {b: host("b2"), a: host("a1", "web"), origin: "a1"},
		"all gone":                  {a: host("a1"), origin: "a1"},
		"two": {a: host("a1", "web"), b: host("b2", "db"),
			mistaken: "two sites that are both called demo"},
		"some nodes are new": {a: host("a1", "old", "web"), origin: "a1"},
		"no node is known": {a: host("a1", "old"), b: host("a1", "older"),
			mistaken: "has none of the nodes of this one: old, older"},
		"no node is known, but an id": {id: "a1", a: host("a1", "old"), origin: "a1"},
		"nonsense":                    {a: host("../../etc\x1b[2J"), mistaken: `reports an invalid site id for its nodes`},
	} {
		s := &site.Site{Name: "demo", ID: c.id,
			Hosts: []site.Host{{Name: "sv1", Address: "local"}, {Name: "sv2", Address: "10.8.1.2"}},
			Nodes: []site.Node{{Name: "db"}, {Name: "web"}}}
		f := &Fleet{}
		for i := range s.Hosts {
			f.All = append(f.All, &HostClient{Name: s.Hosts[i].Name, packer: pack.New(s, nil)})
		}
		if c.unknown {
			f.Unknown = []string{"sv3"}
		}
		hosts := []observe.Host{c.a, c.b}
		hosts[0].Name, hosts[1].Name = "sv1", "sv2"
		err := f.checkOwner(hosts)
		switch {
		case c.mistaken != "":
			if !problem.Is(err, problem.Surprise) || !strings.Contains(err.Error(), c.mistaken) ||
				strings.Contains(err.Error(), "\x1b") {
				t.Errorf("%s: %v", what, err)
			}
		case err != nil || c.origin == "new" && len(f.origin) != 16 || c.origin != "new" && f.origin != c.origin:
			t.Errorf("%s: the origin is %q: %v", what, f.origin, err)
		}
	}
}

// TestRecogniseOneHost: a site with one host is recognised like a site with several.
func TestRecogniseOneHost(t *testing.T) {
	foreign := observe.Host{Name: "sv1", Origin: "b2", Nodes: []observe.Node{{Node: spec.Node{Name: "web"}}}}
	for what, c := range map[string]struct {
		address, id string
		host        observe.Host
		origin      string // "new" for one that no other site has
		mistaken    string
	}{
		"nothing is there": {address: "10.8.1.2", host: observe.Host{Name: "sv1"}, origin: "new"},
		"another id": {address: "10.8.1.2", id: "a1", host: foreign,
			mistaken: "nodes of another site that is called demo"},
		"another id, this machine": {address: "local", id: "a1", host: foreign,
			mistaken: "nodes of another site that is called demo"},
		"no id, other nodes": {
			address: "10.8.1.2", host: observe.Host{Name: "sv1", Origin: "b2",
				Nodes: []observe.Node{{Node: spec.Node{Name: "old"}}}},
			mistaken: "has none of the nodes of this one: old",
		},
		"no id, this machine": {
			address: "local", host: observe.Host{Name: "sv1", Origin: "b2",
				Nodes: []observe.Node{{Node: spec.Node{Name: "old"}}}},
			origin: "b2",
		},
		"its own": {address: "10.8.1.2", id: "b2", host: foreign, origin: "b2"},
	} {
		s := &site.Site{Name: "demo", ID: c.id, Hosts: []site.Host{{Name: "sv1", Address: c.address}},
			Nodes: []site.Node{{Name: "web"}}}
		f := &Fleet{All: []*HostClient{{Name: "sv1", packer: pack.New(s, nil)}}}
		err := f.checkOwner([]observe.Host{c.host})
		switch {
		case c.mistaken != "":
			if !problem.Is(err, problem.Surprise) || !strings.Contains(err.Error(), c.mistaken) {
				t.Errorf("%s: %v", what, err)
			}
		case err != nil || c.origin == "new" && len(f.origin) != 16 || c.origin != "new" && f.origin != c.origin:
			t.Errorf("%s: the origin is %q: %v", what, f.origin, err)
		}
	}
}
