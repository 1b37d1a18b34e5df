package release_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/plan/release"
	"orrery/internal/site"
	"orrery/internal/site/twin"
)

// edited returns a site after a user's edit, and whether the edit changes release 701.
func edited(t *rapid.T, s *site.Site) (*site.Site, bool) {
	e := *s
	e.Roles, e.Nodes, e.Releases, e.Networks = slices.Clone(s.Roles), slices.Clone(s.Nodes), slices.Clone(s.Releases),
		slices.Clone(s.Networks)
	role := rapid.IntRange(0, len(e.Roles)-1).Draw(t, "edited role")
	used := slices.ContainsFunc(e.Nodes, func(n site.Node) bool { return n.Roles[0] == e.Roles[role].Name })
	switch rapid.SampledFrom([]string{"nothing", "notes", "a line", "another release", "pins", "packages", "boot step",
		"limit", "mtu"}).Draw(t, "edit") {
	case "nothing":
	case "notes":
		e.Releases[1].Notes = "other"
	case "a line":
		e.Roles[role].Health = slices.Clone(e.Roles[role].Health)
		for i := range e.Roles[role].Health {
			e.Roles[role].Health[i].Line++
		}
	case "another release":
		e.Releases = append(e.Releases, site.Release{Number: 702})
	case "pins":
		e.Releases[1].Requirements.Text = "p==3\n"
		return &e, true
	case "packages":
		e.Roles[role].Apt = []string{"hello"}
		return &e, used
	case "boot step":
		e.Roles[role].Steps = []site.Step{{Name: "more", When: site.Boot, Script: []byte("true\n"),
			Interpreter: []string{"/bin/sh"}, User: "root"}}
		return &e, used
	case "limit":
		e.Nodes[0].Limits.Memory = 1 << 30
		return &e, true
	case "mtu":
		e.Networks[0].MTU = 1400
		return &e, true
	}
	return &e, false
}

// wantQuiet: up does nothing to the nodes that are live at 701.
func (w *world) wantQuiet() {
	w.t.Helper()
	p, err := w.up()
	if err != nil {
		w.t.Fatal(err)
	}
	for name, number := range w.observe()[0].Releases.Active {
		for _, s := range p.Steps {
			if number == 701 && s.Subject == name {
				w.t.Fatalf("up would %s %s: %s\n%s", s.Kind, name, s.Reason, text(p))
			}
		}
	}
}

// TestStageAgain: however the site directory changes while a release is staged and switched to in
// parts, live nodes follow the copy from which they were staged, and up leaves them alone.
//
// Promise (Files of strangers): Live nodes of a release follow the copy that they were staged from,
// into which no link out of the site directory gets. With site/sitefile.TestKeep,
// test.TestReleaseCopy.
func TestStageAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.must(w.up())
		some := func(what string) map[string]bool {
			nodes := map[string]bool{}
			for _, n := range w.site.Nodes {
				if rapid.Bool().Draw(t, what+" "+n.Name) {
					nodes[n.Name] = true
				}
			}
			return nodes
		}
		declared := w.site
		for i := range rapid.IntRange(1, 4).Draw(t, "rounds") {
			if i > 0 {
				declared, _ = edited(t, declared)
			}
			before := w.host.Releases[701]
			bound := slices.Contains(releasesOf(w), 701)
			err := w.stageOf(declared, 701, some("stage"), rapid.IntRange(0, 3).Draw(t, "cut short") == 0)
			switch {
			case err != nil && !bound:
				t.Fatal(err)
			case err != nil && w.host.Releases[701] != before:
				t.Fatal("the copy was replaced although nothing was staged")
			case err == nil && bound:
				made, _ := twin.Quarantine(declared, 701)
				if what, err := release.Difference(w.host.Releases[701], made); err != nil || what != "" {
					t.Fatalf("staged, although it is another now: %s %v", what, err)
				}
			}
			to := map[string]int{}
			for name := range some("switch") {
				to[name] = 701
			}
			if p, err := w.turn(release.Goal{To: to}); err == nil && len(to) > 0 {
				w.run(p)
			}
			w.wantQuiet()
		}
	})
}

func releasesOf(w *world) []int {
	var all []int
	r := w.observe()[0].Releases
	for _, group := range []map[string]int{r.Active, r.Former} {
		for _, n := range group {
			all = append(all, n)
		}
	}
	return all
}

// TestStageTellsWhat: staging more of a live release from a changed site directory reports the
// difference.
func TestStageTellsWhat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.must(w.up())
		first := w.site.Nodes[0].Name
		if err := w.stageOf(w.site, 701, map[string]bool{first: true}, false); err != nil {
			t.Fatal(err)
		}
		w.must(w.turn(release.Goal{To: map[string]int{first: 701}}))
		e, other := edited(t, w.site)
		rest := map[string]bool{}
		for _, n := range w.site.Nodes[1:] {
			rest[n.Name] = true
		}
		err := w.stageOf(e, 701, rest, false)
		if other == (err == nil) {
			t.Fatalf("other: %t, but %v", other, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(),
			fmt.Sprintf("release 701 is used by node %s: the site directory now declares other nodes for it: ",
				first)) {
			t.Fatal(err)
		}
	})
}
