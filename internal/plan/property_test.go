package plan_test

import (
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/brief"
)

// begun returns a fleet on which a random site is up, and its genes.
func begun(t *rapid.T) (*fleet, *genes) {
	g := drawGenes(t)
	f := newFleet(hostNames[:g.hosts]...)
	for _, h := range f.hosts { // the engine may be one that can do everything
		h.Can = observe.Capabilities{
			LiveLimits: rapid.Bool().Draw(t, "live limits"), MoveNIC: rapid.Bool().
					Draw(t, "moves interfaces"), Keep: rapid.Bool().Draw(t, "keeps"),
		}
		h.Can.PlugNIC = h.Can.MoveNIC && rapid.Bool().Draw(t, "plugs interfaces")
	}
	if rapid.Bool().Draw(t, "up before") {
		f.reach(t, g.site())
	}
	return f, g
}

func TestUpReachesWhatIsDeclared(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, g := begun(t)
		for range 2 {
			g = g.edited(t)
			s := g.site()
			if rapid.Bool().Draw(t, "rotates") {
				f.rotate(t, s)
			}
			p := f.up(t, s, plan.Goal{})
			wantOrder(t, p, s)
			f.reach(t, s)
			f.wantReached(t, s)
			if again := f.up(t, s, plan.Goal{}); !again.Empty() {
				t.Fatalf("the second plan is not empty:\n%s\nafter\n%s", text(again), text(p))
			}
		}
	})
}

// TestBriefIsWhole: the summary of a plan names every node that the plan changes, and says of which
// ones something is lost or interrupted.
func TestBriefIsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, g := begun(t)
		p := f.up(t, g.edited(t).site(), plan.Goal{})
		named, disturbed := map[string]bool{}, map[string]bool{}
		for _, l := range brief.Lines(p) {
			for _, name := range l.Names {
				named[name] = named[name] || l.Noun == "node"
				disturbed[name] = disturbed[name] || l.Noun == "node" && (l.Lost != "" || l.Effect != "")
			}
			if l.Verb == "" || l.Verb == "change" || l.Reason == "" {
				t.Fatalf("%+v of\n%s", l, text(p))
			}
		}
		for _, s := range p.Steps {
			if s.ForNode() && (!named[s.Subject] || len(s.Disturbs) > 0 && !disturbed[s.Subject]) {
				t.Fatalf("%s is not in the summary of\n%s", s, text(p))
			}
		}
	})
}

// stumble makes a random step of a plan fail.
func stumble(t *rapid.T, f *fleet, p *plan.Plan) bool {
	if p.Empty() {
		return false
	}
	s := p.Steps[small(t, len(p.Steps)-1, "fails at")]
	method := string(s.Kind)
	if s.ForNode() {
		method = map[plan.Kind]string{
			plan.CreateNode: "Create", plan.ReplaceNode: "Replace", plan.ReshapeNode: "Change", plan.LimitNode: "Change",
			plan.StartNode: "Start", plan.StopNode: "Stop", plan.KillNode: "Stop", plan.DestroyNode: "Destroy",
			plan.ConfigureNode: "SetProgress", plan.CheckNode: "SetProgress",
		}[s.Kind]
	}
	if rapid.Bool().Draw(t, "half way") {
		f.faults.Crash(method, s.Subject, 1)
	} else {
		f.faults.Fail(method, s.Subject, 1, nil)
	}
	return true
}

func TestUpAfterFailure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, g := begun(t)
		s := g.edited(t).site()
		if rapid.Bool().Draw(t, "rotates") {
			f.rotate(t, s)
		}
		p := f.up(t, s, plan.Goal{})
		if !stumble(t, f, p) {
			return
		}
		result := f.run(p, 1+small(t, 3, "parallel"))
		if len(result.Failed) == 0 {
			t.Fatalf("no step failed of\n%s", text(p))
		}
		if n := len(result.Done) + len(result.Failed) + len(result.Skipped); n != len(p.Steps) {
			t.Fatalf("of %d steps, %d have a result", len(p.Steps), n)
		}
		f.faults.Revive()
		f.reach(t, s)
		f.wantReached(t, s)
		if again := f.up(t, s, plan.Goal{}); !again.Empty() {
			t.Fatalf("the plan after is not empty:\n%s", text(again))
		}
	})
}

// If a run is killed at any moment, and the next one too, a third one completes the work.
func TestUpAfterKill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, g := begun(t)
		s := g.edited(t).site()
		for range 1 + small(t, 1, "kills") {
			if rapid.Bool().Draw(t, "rotates") {
				f.rotate(t, s)
			}
			f.faults.KillAt(1 + small(t, 80, "kill at"))
			f.run(f.up(t, s, plan.Goal{}), 1+small(t, 3, "parallel"))
			f.faults.Revive()
		}
		f.reach(t, s)
		f.wantReached(t, s)
		if again := f.up(t, s, plan.Goal{}); !again.Empty() {
			t.Fatalf("the plan after is not empty:\n%s", text(again))
		}
	})
}

func TestDownLeavesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, g := begun(t)
		s := g.edited(t).site()
		if rapid.Bool().Draw(t, "killed before") {
			f.faults.KillAt(1 + small(t, 40, "kill at"))
		}
		f.run(f.up(t, s, plan.Goal{}), 4)
		f.faults.Revive()
		p := plan.Down(s, f.observe(), plan.Goal{Volumes: true})
		wantOrder(t, p, s)
		if result := f.run(p, 4); !result.OK() {
			t.Fatalf("%v\n%s", result.Failed, text(p))
		}
		for _, h := range f.observe() {
			if len(h.Nodes)+len(h.Networks)+len(h.Volumes) > 0 || h.Names != "" {
				t.Fatalf("left on host %s: %+v\nafter\n%s", h.Name, h, text(p))
			}
		}
		if again := plan.Down(s, f.observe(), plan.Goal{Volumes: true}); !again.Empty() {
			t.Fatalf("the second plan is not empty:\n%s", text(again))
		}
	})
}
