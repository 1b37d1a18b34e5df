package enginetest

import (
	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

func fileOf(path, text string) host.File {
	return host.File{Path: path, Content: []byte(text), Mode: 0o644}
}

// replaced replaces a stopped node with private data by one with other layers.
func replaced(s *suite, name string, id int) (keeper engine.Replacer, old, next *spec.Node) {
	s.Helper()
	keeper, ok := s.Engine.(engine.Replacer)
	if !s.Engine.Capabilities().Keep {
		s.Skip("the engine keeps nothing of what it replaces")
	}
	if !ok {
		s.Fatal("the engine says that it can keep what it replaces, and is no Replacer")
	}
	if s.Relayer == nil {
		s.Skip("there is but one layer")
	}
	old = s.Node(name, id)
	old.Mounts = []spec.Mount{volumeAt("/srv/data", false)}
	s.create(old)
	s.start(old)
	s.put(old, fileOf("/var/lib/enginetest", "former"))
	s.put(old, fileOf("/srv/data/rows", "42"))
	s.stop(old)
	s.must(s.Engine.SetProgress(s.Context(), engine.RefOf(old),
		engine.Progress{Configured: true, Proven: "p", Config: spec.Config{Health: "h"}}))
	replacement := *old
	next = &replacement
	s.Relayer(next)
	s.must(keeper.Replace(s.Context(), next))
	return keeper, old, next
}

func replace(s *suite) {
	keeper, old, next := replaced(s, "replace", 50)
	s.wantState(next, observe.Stopped)
	o := s.listed(next)
	s.want("base", o.Base, next.Base)
	s.want("layer", o.Layer, next.Layer)
	if o.Configured || o.Proven != "" {
		s.Error("a replaced node is neither configured nor proven healthy")
	}
	s.start(next)
	wantRefused(s, keeper, old, next)
	wantIdentity(s, next)
	if s.has(next, "/var/lib/enginetest") {
		s.Error("the replacement has the private data of the former node")
	}
	s.want("on the volume", s.ask(next, "cat", "/srv/data/rows"), "42")
	s.stop(next)
	s.must(keeper.Restore(s.Context(), engine.RefOf(old)))
	s.wantState(old, observe.Stopped)
	o = s.listed(old)
	s.want("base", o.Base, old.Base)
	s.want("layer", o.Layer, old.Layer)
	if !o.Configured || o.Proven != "p" {
		s.Error("the restored node has forgotten that it is configured and healthy")
	}
	s.start(old)
	s.want("private data", s.ask(old, "cat", "/var/lib/enginetest"), "former")
}

func replaceSettled(s *suite) {
	keeper, _, next := replaced(s, "settle", 51)
	ref := engine.RefOf(next)
	s.must(keeper.Settle(s.Context(), ref))
	s.must(keeper.Settle(s.Context(), ref))
	s.start(next)
	s.must(keeper.Settle(s.Context(), ref)) // the node may run when it is settled
	s.stop(next)
	_ = keeper.Restore(s.Context(), ref) // there is nothing to restore, which must do no harm
	s.want("layer", s.listed(next).Layer, next.Layer)
	s.start(next)
	if s.has(next, "/var/lib/enginetest") {
		s.Error("the former node is still there")
	}
}

// replaceTwice: Restore returns to the state before the last Replace.
func replaceTwice(s *suite) {
	keeper, old, next := replaced(s, "twofold", 52)
	s.start(next)
	s.put(next, fileOf("/var/lib/enginetest", "second"))
	s.stop(next)
	s.must(keeper.Replace(s.Context(), old))
	s.must(keeper.Restore(s.Context(), engine.RefOf(next)))
	s.start(next)
	s.want("private data", s.ask(next, "cat", "/var/lib/enginetest"), "second")
}

// wantRefused: what runs is not replaced.
func wantRefused(s *suite, keeper engine.Replacer, old, next *spec.Node) {
	s.Helper()
	for what, err := range map[string]error{
		"Replace": keeper.Replace(s.Context(), old),
		"Restore": keeper.Restore(s.Context(), engine.RefOf(old)),
	} {
		if problem.ExitCode(err) != int(problem.Surprise) {
			s.Errorf("%s of a running node returns %v, not a Surprise", what, err)
		}
	}
	s.want("layer", s.listed(next).Layer, next.Layer)
	s.ask(next, "true")
}
