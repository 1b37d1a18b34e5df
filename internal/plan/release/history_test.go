package release_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/engine"
	"orrery/internal/observe"
	"orrery/internal/plan/release"
)

// TestHistory: in random histories of switches, rollbacks, kills and boots of the host, each
// recovery ends with the set at one release, and nothing else stays live in any respect.
func TestHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, at := stagedTwice(t)
		for range rapid.IntRange(1, 6).Draw(t, "turns") {
			goal := release.Goal{To: w.anywhere(at)}
			if former, err := release.PreviousReleases(w.observe()[0].Releases, slices.Collect(maps.Keys(at))); err == nil &&
				rapid.Bool().Draw(t, "rollback") {
				goal = release.Goal{To: former, Back: true}
			}
			p, err := w.turn(goal)
			if err != nil && strings.Contains(err.Error(), "(orrery stage ") {
				// A kill has left an instance incomplete, and the error names the cure.
				for _, number := range goal.To {
					w.stage(number)
					break
				}
				p, err = w.turn(goal)
			}
			if err != nil {
				t.Fatal(err)
			}
			end := goal.To
			if !goal.Back && rapid.Bool().Draw(t, "taken back") {
				end = at
			}
			w.intend(goal.To, end)
			if rapid.Bool().Draw(t, "killed") {
				w.host.KillAt(1 + rapid.IntRange(0, 60).Draw(t, "killed at"))
			}
			w.run(p)
			w.host.Revive()
			at = w.observe()[0].Releases.Active
			if w.observe()[0].Releases.Switch != nil {
				at = end
				if rapid.Bool().Draw(t, "booted") {
					w.stop()
				}
				w.must(w.turn(release.Goal{To: end, Recover: true, Back: goal.Back}))
			}
			w.must(w.up())
			w.want(at)
			w.wantOneLive()
		}
	})
}

// anywhere draws the release to which all nodes go.
func (w *world) anywhere(at map[string]int) map[string]int {
	number := rapid.SampledFrom([]int{0, 700, 701}).Draw(w.t, "to")
	to := map[string]int{}
	for name := range at {
		to[name] = number
	}
	return to
}

// wantOneLive: an instance that is not live does nothing that only a live one does, also when it stands still.
func (w *world) wantOneLive() {
	w.t.Helper()
	for _, n := range w.observe()[0].Nodes {
		if n.Staged && (n.Active && n.State == observe.Running || n.HoldsExclusive()) {
			w.t.Fatalf("node %s of release %d (%s) is not live, and is on record as active: %t, with volumes %+v", n.Name,
				n.Release, n.State, n.Active, n.Mounts)
		}
	}
}

// TestCutShort: an instance that a killed switch left incomplete, before it had ever done live-only
// work, starts that work once it is switched to.
func TestCutShort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.must(w.up())
		w.stage(700)
		all := map[string]int{}
		for _, n := range w.site.Nodes {
			all[n.Name] = 700
		}
		w.must(w.turn(release.Goal{To: all}))
		for _, n := range w.observe()[0].Nodes {
			if n.Release == 0 {
				n.Config.Active = nil
				if err := w.host.SetProgress(t.Context(), engine.RefOf(&n.Node), engine.Progress{Config: n.Config}); err != nil {
					t.Fatal(err)
				}
				all[n.Name] = 0
			}
		}
		w.must(w.turn(release.Goal{To: all}))
		w.want(all)
	})
}
