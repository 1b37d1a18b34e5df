package plan_test

import (
	"slices"
	"testing"

	"orrery/internal/plan"
	"orrery/internal/site"
)

// TestConfigureDisturbs: a node counts as disturbed if services of it restart. A file can declare
// which services restart.
func TestConfigureDisturbs(t *testing.T) {
	declared := func() *site.Site {
		s := observatory()
		s.Roles[1].Files = append(s.Roles[1].Files,
			site.File{Path: "/etc/motd", Template: "motd", Content: []byte("old\n"), Restarts: []string{}})
		s.Roles[2].Active = []string{"writer.service"}
		return s
	}
	content := func(s *site.Site, text string) { s.Roles[1].Files[2].Content = []byte(text) }
	for name, c := range map[string]struct {
		change func(*site.Site)
		node   string
		want   bool
	}{
		"a file": {func(s *site.Site) { s.Roles[1].Files[0].Content = []byte("new\n") },
			"receptor1", true},
		"a file that restarts nothing": {func(s *site.Site) { content(s, "new\n") }, "receptor1", false},
		"keys of people": {func(s *site.Site) {
			s.Nodes[1].AuthorizedKeys = []string{"ssh-ed25519 AAAA"}
		}, "receptor1", false},
		"one that restarts a service": {func(s *site.Site) {
			content(s, "new\n")
			s.Roles[1].Files[2].Restarts = []string{"receptor.service"}
		}, "receptor1", true},
		"one that restarts another node's": {func(s *site.Site) {
			content(s, "new\n")
			s.Roles[1].Files[2].Restarts = []string{"writer.service"}
		}, "receptor1", false},
		"such a file, and another": {func(s *site.Site) {
			content(s, "new\n")
			s.Roles[1].Files[0].Content = []byte("new\n")
		}, "receptor1", true},
		"such a file, and a service": {func(s *site.Site) {
			content(s, "new\n")
			s.Roles[1].Services = append(s.Roles[1].Services, "x.service")
		}, "receptor1", true},
		"a step beside a live service": {func(s *site.Site) { s.Roles[2].Steps[0].Script = []byte("createdb y\n") },
			"db", true},
		"a file of a node without services": {func(s *site.Site) { s.Roles[3].Files[0].Content = []byte("new\n") },
			"portal", false},
	} {
		f := newFleet("sv1")
		f.reach(t, declared())
		s := declared()
		c.change(s)
		p := f.up(t, s, plan.Goal{})
		i := slices.IndexFunc(p.Steps, func(s *plan.Step) bool { return s.Kind == plan.ConfigureNode && s.Subject == c.node })
		if i < 0 {
			t.Errorf("%s: the plan is %q", name, lines(p))
		} else if got := slices.Contains(p.Steps[i].Disturbs, c.node); got != c.want {
			t.Errorf("%s: disturbed is %v, not %v", name, got, c.want)
		}
		f.reach(t, s)
		f.wantReached(t, s)
	}
}
