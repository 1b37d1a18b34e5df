package release_test

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/plan"
	"orrery/internal/plan/release"
	"orrery/internal/plan/wayback"
)

// begun returns a world in which release 700, or none, is live, and 701 is in quarantine.
func begun(t *rapid.T) (w *world, live map[string]int) {
	w = newWorld(t)
	live = map[string]int{}
	for _, n := range w.site.Nodes {
		live[n.Name] = 0
	}
	if rapid.Bool().Draw(t, "a release is live") {
		w.stage(700)
		for name := range live {
			live[name] = 700
		}
		w.must(w.turn(release.Goal{To: live}))
	}
	w.must(w.up())
	w.stage(701)
	w.want(live)
	return w, live
}

func TestSwitchReaches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, live := begun(t)
		w.host.Can.MoveNIC, w.host.Can.Remount = rapid.Bool().Draw(t, "moves interfaces"), rapid.Bool().Draw(t, "remounts")
		to := w.set(701)
		p, err := w.turn(release.Goal{To: to})
		if err == nil {
			wantProofs(t, p)
		}
		w.must(p, err)
		w.want(merged(live, to))
		r := w.observe()[0].Releases
		for name := range to {
			if r.Active[name] != 701 || r.Former[name] != live[name] {
				t.Fatalf("on record for %s: live %d, former %d", name, r.Active[name], r.Former[name])
			}
		}
		again, err := w.turn(release.Goal{To: to})
		if err != nil || slices.ContainsFunc(again.Steps, func(s *plan.Step) bool { return s.Kind != plan.CommitSwitch }) {
			t.Fatalf("the second plan: %v\n%s", err, text(again))
		}
		for _, s := range again.Steps {
			for name := range to {
				if former := s.Releases.Former[name]; former != live[name] {
					t.Fatalf("the second plan lets rollback return to release %d of %s", former, name)
				}
			}
		}
		if rapid.Bool().Draw(t, "rebooted") {
			w.reboot()
			w.want(merged(live, to))
		}
		back, err := release.PreviousReleases(r, slices.Collect(maps.Keys(to)))
		if err != nil {
			t.Fatal(err)
		}
		w.must(w.turn(release.Goal{To: back, Back: true}))
		w.want(live)
	})
}

// before returns the steps that must be done before a step begins.
func before(p *plan.Plan, s *plan.Step) map[int]bool {
	all := map[int]bool{}
	var collect func(s *plan.Step)
	collect = func(s *plan.Step) {
		for _, need := range s.Needs {
			if !all[need] {
				all[need] = true
				collect(p.Steps[need])
			}
		}
	}
	collect(s)
	return all
}

// wantProofs: nothing is disturbed before all of the set is proven, and links move in one step.
func wantProofs(t *rapid.T, p *plan.Plan) {
	t.Helper()
	moves := 0
	for _, s := range p.Steps {
		if s.Kind == plan.MoveLinks {
			moves++
		}
		if len(s.Disturbs) == 0 && s.Kind != plan.TakeVolumes {
			continue
		}
		before := before(p, s)
		for _, proof := range p.Steps {
			if proof.Kind == plan.CheckNode && proof.Node.Staged && !before[proof.N] {
				t.Fatalf("%s is not after %s\n%s", s, proof, text(p))
			}
		}
	}
	if moves > 1 {
		t.Fatalf("%d steps move links\n%s", moves, text(p))
	}
}

// methods are the methods of the engine that a step calls.
var methods = map[plan.Kind][]string{
	plan.CheckNode: {"SetProgress"}, plan.RetireNode: {"Remount", "SetProgress"}, plan.TakeVolumes: {"Remount"},
	plan.ActivateNode: {"Remount", "SetProgress"},
	plan.StopNode:     {"Stop"}, plan.StartNode: {"Start"}, plan.ReshapeNode: {"Change"},
}

// TestSwitchTakenBack: whichever step fails, the former release is live, and everything is as it
// was before.
func TestSwitchTakenBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, live := begun(t)
		before := w.now()
		w.host.Can.MoveNIC, w.host.Can.Remount = rapid.Bool().Draw(t, "moves interfaces"), rapid.Bool().Draw(t, "remounts")
		p, err := w.turn(release.Goal{To: w.set(701)})
		if err != nil {
			t.Fatal(err)
		}
		s := p.Steps[rapid.IntRange(0, len(p.Steps)-1).Draw(t, "fails")]
		method := string(s.Kind)
		if names := methods[s.Kind]; names != nil {
			method = rapid.SampledFrom(names).Draw(t, "method")
		}
		if rapid.Bool().Draw(t, "half way") {
			w.host.Crash(method, s.Subject, 1)
		} else {
			w.host.Fail(method, s.Subject, 1, nil)
		}
		result := w.run(p)
		w.host.Revive()
		if result.OK() {
			return // the step did not reach that method
		}
		done := result.Done
		for _, f := range result.Failed {
			done = append(done, f.Step)
		}
		back := wayback.Undo(p, done)
		if undone := w.run(back); !undone.OK() {
			t.Fatalf("undo: %v\n%s\nafter\n%s", undone.Failed, text(back), text(p))
		}
		if now := w.now(); !maps.Equal(now, before) {
			t.Fatalf("was\n%v\nis\n%v\nafter\n%s\nand\n%s", before, now, text(p), text(back))
		}
		w.must(w.up()) // a node that was restarted is proven again
		w.want(live)
	})
}

// TestSwitchKilled: whenever a switch is killed, and its recovery too, the next recovery ends with
// the set at one release.
func TestSwitchKilled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, live := begun(t)
		to := w.set(701)
		from := map[string]int{}
		for name := range to {
			from[name] = live[name]
		}
		p, err := w.turn(release.Goal{To: to})
		if err != nil {
			t.Fatal(err)
		}
		end := from
		if rapid.Bool().Draw(t, "onward") {
			end = to
		}
		w.intend(to, end)
		w.host.KillAt(1 + rapid.IntRange(0, 60).Draw(t, "killed at"))
		w.run(p)
		w.host.Revive()
		if w.observe()[0].Releases.Switch == nil { // the switch was over before, except perhaps the names
			w.must(w.up())
			w.want(merged(live, to))
			return
		}
		for range rapid.IntRange(0, 2).Draw(t, "recoveries killed") {
			w.host.KillAt(1 + rapid.IntRange(0, 30).Draw(t, "killed at"))
			again, err := w.turn(release.Goal{To: end, Recover: true})
			if err != nil {
				t.Fatal(err)
			}
			w.run(again)
			w.host.Revive()
		}
		w.must(w.turn(release.Goal{To: end, Recover: true}))
		w.must(w.up()) // names may have changed
		w.want(merged(live, end))
	})
}

// TestPrune: the live, former and last confirmed releases are never removed, and removed ones leave
// nothing behind.
func TestPrune(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, live := begun(t)
		if rapid.Bool().Draw(t, "switched") {
			to := w.set(701)
			w.must(w.turn(release.Goal{To: to}))
			live = merged(live, to)
		}
		kept := release.Retained(w.observe()[0].Releases)
		newest := rapid.IntRange(0, 2).Draw(t, "newest")
		p := release.Prune(w.site, w.observe(), newest)
		for _, s := range p.Steps {
			if s.Kind == plan.ForgetRelease && kept[s.Release] {
				t.Fatalf("%s, which must be kept", s)
			}
		}
		w.must(p, nil)
		w.want(live)
		if again := release.Prune(w.site, w.observe(), newest); !again.Empty() {
			t.Fatalf("the second plan is not empty:\n%s", text(again))
		}
	})
}
