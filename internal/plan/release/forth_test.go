package release_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/engine"
	"orrery/internal/plan"
	"orrery/internal/plan/release"
	"orrery/internal/site/spec"
	"orrery/internal/site/twin"
)

// TestBackAndForth: a release that was staged once can be switched to while it exists, even if it
// was live before and has released its volumes, and even after a boot of the host.
func TestBackAndForth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, all := stagedTwice(t)
		for range rapid.IntRange(2, 6).Draw(t, "turns") {
			to := w.anywhere(all)
			back := map[string]int(nil)
			if former, err := release.PreviousReleases(w.observe()[0].Releases, []string{w.site.Nodes[0].Name}); err == nil &&
				rapid.Bool().Draw(t, "rollback") {
				back = w.anywhere(all)
				for name := range back {
					back[name] = former[w.site.Nodes[0].Name]
				}
				to = back
			}
			if w.site.Networks[1].Kind == "" && rapid.IntRange(0, 3).Draw(t, "booted") == 0 {
				w.reboot()
			}
			p, err := w.turn(release.Goal{To: to, Back: back != nil})
			if err == nil {
				wantProofs(t, p)
			}
			w.must(p, err)
			w.must(w.up()) // names may have changed
			w.want(to)
		}
	})
}

// TestProofsAskNobodyRetired: whichever parts of a site go forward and back in any order, an
// instance is proven in quarantine only if all nodes that it needs answer there. Retired nodes have
// released their volumes, and other nodes are live.
func TestProofsAskNobodyRetired(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, at := stagedTwice(t)
		for range rapid.IntRange(2, 6).Draw(t, "turns") {
			to := w.set(rapid.SampledFrom([]int{0, 700, 701}).Draw(t, "to"))
			if w.site.Networks[1].Kind == "" && rapid.IntRange(0, 3).Draw(t, "booted") == 0 {
				w.reboot()
			}
			w.host.Healthy = w.askPeers
			p, err := w.turn(release.Goal{To: to})
			if err == nil {
				wantProofs(t, p)
				w.wantPeersFirst(p, merged(at, to))
			}
			w.must(p, err)
			w.host.Healthy = nil // after a boot, health checks fail until the peers have started, too
			w.must(w.up())       // names may have changed
			at = merged(at, to)
			w.want(at)
		}
	})
}

// TestProvenWhatCanBe: an instance is proven in quarantine, unless a peer does not answer there.
func TestProvenWhatCanBe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, _ := stagedTwice(t)
		w.must(w.turn(release.Goal{To: w.set(701)}))
		w.must(w.turn(release.Goal{To: w.set(0)}))
		p, err := w.turn(release.Goal{To: w.set(701)})
		if err != nil {
			t.Fatal(err)
		}
		proven := map[string]bool{}
		for _, s := range p.Steps {
			if s.Kind == plan.CheckNode && s.Node.Staged {
				proven[s.Subject] = true
			}
		}
		for _, s := range p.Steps {
			if s.Kind != plan.MoveLinks {
				continue
			}
			for _, m := range s.Moves {
				n := m.Old
				if m.New.Staged || n.Config.Health == "" || w.askPeers(n) != nil || w.former(n) {
					continue
				}
				bereft := slices.ContainsFunc(w.instance(n.Name, n.Release).Mounts,
					func(m spec.Mount) bool { return m.Copy == spec.NoCopy })
				if !bereft && !proven[n.Name] {
					t.Fatalf("node %s goes live without a proof\n%s", n.Name, text(p))
				}
			}
		}
	})
}

// TestStageSparesTheWayBack: the release that rollback returns to stays as it was live, however
// often it is staged. It is staged again only if it is no longer complete, or the rollback is given
// up.
func TestStageSparesTheWayBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.must(w.up())
		w.stage(701)
		w.stage(700)
		all := map[string]int{}
		for _, number := range []int{701, 700} {
			for _, n := range w.site.Nodes {
				all[n.Name] = number
			}
			w.must(w.turn(release.Goal{To: all}))
			w.must(w.up())
		}
		staged, err := twin.Quarantine(w.site, 701)
		if err != nil {
			t.Fatal(err)
		}
		kept := *w.host.Releases[701]
		kept.Stage = 701
		p, _, err := release.Stage(staged, &kept, w.observe(), plan.Goal{})
		if err != nil || !p.Empty() {
			t.Fatalf("%v\n%s", err, text(p))
		}
		if spared := release.RollbackNodes(staged, w.observe(), plan.Goal{}); len(spared) != len(w.site.Nodes) {
			t.Fatalf("spared are %q", spared)
		}
		e, other := edited(t, w.site)
		anew, err := twin.Quarantine(e, 701)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := release.Stage(anew, &kept, w.observe(), plan.Goal{}); other == (err == nil) || other &&
			!strings.Contains(err.Error(), "--give-up-rollback") {
			t.Fatalf("other: %t, but %v", other, err)
		}
		first := w.site.Nodes[0].Name
		for _, n := range w.observe()[0].Nodes { // a killed stage, for example, has left it incomplete
			if n.Name == first && n.Release == 701 {
				progress := engine.Progress{Config: n.Config}
				if err := w.host.SetProgress(context.Background(), engine.RefOf(&n.Node), progress); err != nil {
					t.Fatal(err)
				}
			}
		}
		w.stage(701)
		for name := range all {
			all[name] = 701
		}
		w.must(w.turn(release.Goal{To: all, Back: true}))
		w.must(w.up())
		w.want(all)
		for name := range all {
			all[name] = 700
		}
		w.must(w.turn(release.Goal{To: all}))
		w.record(release.AbandonRollback(w.observe()[0].Releases, 701, plan.Goal{}))
		if err := w.stageOf(e, 701, nil, false); err != nil {
			t.Fatal(err)
		}
		for name := range all {
			all[name] = 701
		}
		w.must(w.turn(release.Goal{To: all}))
	})
}
