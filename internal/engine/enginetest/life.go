package enginetest

import (
	"context"
	"sync"

	"orrery/internal/engine"
	"orrery/internal/observe"
	"orrery/internal/problem"
)

func life(s *suite) {
	n := s.Node("life", 1)
	if _, ok := s.find(n); ok {
		s.Fatal("it is listed before it is made")
	}
	s.create(n)
	s.wantState(n, observe.Stopped)
	o := s.listed(n)
	s.want("name", o.Name, n.Name)
	s.want("site", o.Site, n.Site)
	s.want("base", o.Base, n.Base)
	s.want("layer", o.Layer, n.Layer)
	s.want("machine-id", o.MachineID, n.MachineID)
	if o.Configured || o.Proven != "" {
		s.Error("a new node is neither configured nor proven healthy")
	}
	if len(o.NICs) != len(n.NICs) || o.NICs[0] != n.NICs[0] {
		s.Errorf("interfaces: got %+v, want %+v", o.NICs, n.NICs)
	}
	s.start(n)
	s.wantState(n, observe.Running)
	s.ask(n, "true")
	s.stop(n)
	s.wantState(n, observe.Stopped)
	s.start(n)
	s.ask(n, "true")
	s.destroy(n) // while it runs
	if _, ok := s.find(n); ok {
		s.Error("it is listed after it was destroyed")
	}
}

func createTwice(s *suite) {
	n := s.made("twice", 2)
	err := s.Engine.Create(s.Context(), n)
	if err == nil {
		s.Fatal("a node could be made twice")
	}
	if problem.ExitCode(err) != int(problem.Surprise) {
		s.Errorf("the error is not a Surprise: %v", err)
	}
	s.wantState(n, observe.Stopped)
	s.start(n)
}

func missing(s *suite) {
	n := s.Node("missing", 3)
	ref := engine.RefOf(n)
	for what, err := range map[string]error{
		"Start":       s.Engine.Start(s.Context(), ref),
		"Change":      s.Engine.Change(s.Context(), n),
		"SetProgress": s.Engine.SetProgress(s.Context(), ref, engine.Progress{}),
		"Run":         s.runner(n).Run(s.Context(), commandOf("true")),
	} {
		if err == nil {
			s.Errorf("%s of a node that is not there succeeds", what)
		}
	}
	if err := s.Engine.Destroy(s.Context(), ref); err != nil {
		s.Errorf("Destroy of a node that is not there: %v", err)
	}
	if _, ok := s.find(n); ok {
		s.Error("it is listed")
	}
}

func listBySite(s *suite) {
	b, a := s.made("listb", 4), s.made("lista", 5)
	all, err := s.Engine.List(s.Context(), s.Site)
	s.must(err)
	if len(all) != 2 || all[0].Name != a.Name || all[1].Name != b.Name {
		s.Errorf("the nodes of the site are not listed by name: %d nodes", len(all))
	}
	every, err := s.Engine.List(s.Context(), "")
	s.must(err)
	if len(every) < 2 {
		s.Errorf("of all sites only %d nodes are listed", len(every))
	}
	none, err := s.Engine.List(s.Context(), s.Site+"-other")
	s.must(err)
	if len(none) != 0 {
		s.Errorf("%d nodes are listed of another site", len(none))
	}
}

// glance: Glance and List agree on the states of nodes.
func glance(s *suite) {
	g, can := s.Engine.(engine.StateReader)
	if !can {
		s.Skip("the engine is no Glancer")
	}
	runs, stands, frozen := s.made("glruns", 81), s.made("glstands", 82), s.made("glfrozen", 83)
	s.start(runs)
	s.start(frozen)
	if f, can := s.Engine.(engine.Freezer); can {
		s.must(f.Freeze(s.Context(), engine.RefOf(frozen)))
		defer func() { s.must(f.Thaw(s.Context(), engine.RefOf(frozen))) }()
	}
	list, err := s.Engine.List(s.Context(), s.Site)
	s.must(err)
	for _, n := range list {
		seen := n
		seen.State = observe.Stopped
		g.ReadState(&seen)
		if seen.State != n.State {
			s.Errorf("%s is %s in the list, and %s at a glance", n.Name, n.State, seen.State)
		}
		if n.Name == stands.Name && seen.Runs() {
			s.Error("a node that was never started runs at a glance")
		}
	}
}

// again: an operation that has nothing to do leaves the node alone.
func again(s *suite) {
	n := s.made("again", 6)
	s.stop(n)
	s.start(n)
	s.start(n)
	s.wantState(n, observe.Running)
	s.must(s.Engine.Change(s.Context(), n))
	s.wantState(n, observe.Running)
	stopLate(s, n)
	s.stop(n)
	s.destroy(n)
	s.destroy(n)
}

func parallel(s *suite) {
	var wait sync.WaitGroup
	for i, name := range []string{"par0", "par1", "par2", "par3"} {
		n := s.Node(name, 40+i)
		s.destroyAfter(n)
		wait.Go(func() {
			ctx, cancel := context.WithTimeout(s.Context(), s.within())
			defer cancel()
			ref := engine.RefOf(n)
			for _, do := range []func() error{
				func() error { return s.Engine.Create(ctx, n) },
				func() error { return s.Engine.Start(ctx, ref) },
				func() error { return s.Engine.Runner(ref).Run(ctx, commandOf("true")) },
				func() error { return s.Engine.SetProgress(ctx, ref, engine.Progress{Configured: true}) },
				func() error { _, err := s.Engine.List(ctx, s.Site); return err },
				func() error { return s.Engine.Stop(ctx, ref) },
				func() error { return s.Engine.Destroy(ctx, ref) },
			} {
				if err := do(); err != nil {
					s.Errorf("%s: %v", name, err)
					return
				}
			}
		})
	}
	wait.Wait()
	if all, err := s.Engine.List(s.Context(), s.Site); err != nil || len(all) != 0 {
		s.Errorf("%d nodes are left (%v)", len(all), err)
	}
}

func broken(s *suite) {
	if s.Break == nil {
		s.Skip("no moment of Create leaves a half made node")
	}
	n := s.Node("broken", 7)
	s.destroyAfter(n)
	s.Break(s.T, n)
	s.wantState(n, observe.Broken)
	if err := s.Engine.Create(s.Context(), n); err == nil {
		s.Error("a half made node could be made once more")
	}
	o := s.listed(n)
	s.must(s.Engine.Destroy(s.Context(), engine.RefOf(&o.Node))) // with what List returns of it
	s.must(s.Engine.Create(s.Context(), n))
	s.start(n)
}

// cancelled: a node can be removed and made again after any operation was cancelled.
func cancelled(s *suite) {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	n := s.Node("cancelled", 8)
	s.destroyAfter(n)
	_ = s.Engine.Create(ctx, n) // it may succeed, because the work may take almost no time
	if _, ok := s.find(n); !ok {
		s.must(s.Engine.Create(s.Context(), n))
	}
	if s.listed(n).State != observe.Broken {
		_ = s.Engine.Start(ctx, engine.RefOf(n))
	}
	_, listed := s.find(n)
	if !listed {
		s.Fatal("a node whose start was cancelled is not listed")
	}
	s.destroy(n)
	s.must(s.Engine.Create(s.Context(), n))
	s.start(n)
	s.ask(n, "true")
}
