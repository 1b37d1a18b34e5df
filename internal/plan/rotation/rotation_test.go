package rotation_test

import (
	"testing"

	"orrery/internal/observe"
	"orrery/internal/plan/rotation"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// TestGenerations: the hosts must agree on the generation of a secret, unless it is rotated. What one of
// them claims decides neither the next generation nor whether there can be one.
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
