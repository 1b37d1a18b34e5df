package rotation_test

import (
	"maps"
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/plan/rotation"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/secretspec"
	"orrery/internal/site/spec"
)

// TestGenerations: the hosts must agree on the generation of a secret, unless it is rotated. What one of
// them claims decides neither the next generation nor whether there can be one.
//
// Promise (Other hosts): A host that reports a false generation of a secret decides neither its
// value nor its next generation. With control.TestRotateInterrupted.
func TestGenerations(t *testing.T) {
	host := func(name string, generation int) observe.Host {
		h := observe.Host{Name: name}
		if generation > 0 {
			h.Secrets = map[string]int{"db": generation}
		}
		return h
	}
	recorded := observe.Host{Name: "sv3", Nodes: []observe.Node{{Node: spec.Node{
		Config: spec.Config{Secrets: map[string]int{"db": 2}}}}}}
	for what, c := range map[string]struct {
		hosts      []observe.Host
		now, later int // 0: a problem
	}{
		"new":              {[]observe.Host{host("sv1", 0)}, 1, 2},
		"one has it":       {[]observe.Host{host("sv1", 0), host("sv2", 3)}, 3, 4},
		"they agree":       {[]observe.Host{host("sv1", 3), host("sv2", 3)}, 3, 4},
		"interrupted":      {[]observe.Host{host("sv1", 4), host("sv2", 3)}, 0, 5},
		"a liar":           {[]observe.Host{host("sv1", 4), host("sv2", 1<<30)}, 0, 6},
		"a liar below":     {[]observe.Host{host("sv1", 1), host("sv2", 7), host("sv3", 7)}, 0, 3},
		"the number lost":  {[]observe.Host{host("sv1", 0), recorded}, 1, 3},
		"and not the last": {[]observe.Host{host("sv1", 2), recorded}, 2, 3},
	} {
		now, err := rotation.Observed(c.hosts, nil)
		switch {
		case c.now == 0:
			if !problem.Is(err, problem.Surprise) {
				t.Errorf("%s: %v, %v", what, now, err)
			}
		case err != nil || now.Of("db") != c.now:
			t.Errorf("%s: %v, %v", what, now, err)
		}
		if later, err := rotation.Observed(c.hosts, map[string]bool{"db": true}); err != nil || later.Of("db") != c.later {
			t.Errorf("%s, rotated: %v, %v", what, later, err)
		}
	}
}

// TestOfNode: a node has the generations of the secrets that its roles read, including those of its own values.
func TestOfNode(t *testing.T) {
	s := &site.Site{
		Secrets: []site.Secret{{Name: "db", Generate: 32}, {Name: "key", Generate: 32, Per: secretspec.PerNode}},
		Roles: []site.Role{{Name: "base", Secrets: []site.SecretUse{{Name: "key"}}}, {Name: "idle"},
			{Name: "web", NeedsRoles: []string{"base"}, Secrets: []site.SecretUse{{Name: "db"}}}},
		Nodes: []site.Node{{Name: "a", Roles: []string{"web"}}, {Name: "b", Roles: []string{"idle"}}},
	}
	g := rotation.Generations{"db": 3, "key@a": 2, "key@b": 5, "key": 9}
	if got := g.OfNode(s, &s.Nodes[0]); !maps.Equal(got, map[string]int{"db": 3, "key@a": 2}) {
		t.Errorf("%v", got)
	}
	if got := g.OfNode(s, &s.Nodes[1]); got != nil {
		t.Errorf("%v", got)
	}
	old := &spec.Config{Secrets: map[string]int{"db": 3, "key@a": 1}}
	desired := &spec.Config{Secrets: g.OfNode(s, &s.Nodes[0])}
	if got := rotation.Describe(old, desired); got != "secret key: generation 2 instead of 1" {
		t.Error(got)
	}
	if err := rotation.Unfinished("key@a", "sv1", 2, "sv2", 1); !strings.Contains(err.Error(), "orrery secret rotate key --node a") {
		t.Error(err)
	}
}
