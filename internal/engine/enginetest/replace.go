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

// replaced returns a stopped node with private data that has been replaced by one with other layers.
func replaced(s *suite, name string, id int) (keeper engine.Keeper, was, is *spec.Node) {
	s.Helper()
	keeper, ok := s.Engine.(engine.Keeper)
	if !s.Engine.Capabilities().Keep {
		s.Skip("the engine keeps nothing of what it replaces")
	}
	if !ok {
		s.Fatal("the engine says that it can keep what it replaces, and is no Keeper")
	}
	if s.Relayer == nil {
		s.Skip("there is but one layer")
	}
	was = s.Node(name, id)
	was.Mounts = []spec.Mount{volumeAt("/srv/data", false)}
	s.create(was)
	s.start(was)
	s.put(was, fileOf("/var/lib/enginetest", "former"))
	s.put(was, fileOf("/srv/data/rows", "42"))
	s.stop(was)
	s.must(s.Engine.Mark(s.Context(), engine.RefOf(was),
		engine.Mark{Configured: true, Proven: "p", Config: spec.Config{Health: "h"}}))
	replacement := *was
	is = &replacement
	s.Relayer(is)
	s.must(keeper.Replace(s.Context(), is))
	return keeper, was, is
}

func replace(s *suite) {
	keeper, was, is := replaced(s, "replace", 50)
	s.wantState(is, observe.Stopped)
	o := s.listed(is)
	s.want("base", o.Base, is.Base)
	s.want("layer", o.Layer, is.Layer)
	if o.Configured || o.Proven != "" {
		s.Error("a replaced node is neither configured nor proven healthy")
	}
	s.start(is)
	wantRefused(s, keeper, was, is)
	wantIdentity(s, is)
	if s.has(is, "/var/lib/enginetest") {
		s.Error("the replacement has the private data of the former node")
	}
	s.want("on the volume", s.ask(is, "cat", "/srv/data/rows"), "42")
	s.stop(is)
	s.must(keeper.Restore(s.Context(), engine.RefOf(was)))
	s.wantState(was, observe.Stopped)
	o = s.listed(was)
	s.want("base", o.Base, was.Base)
	s.want("layer", o.Layer, was.Layer)
	if !o.Configured || o.Proven != "p" {
		s.Error("the restored node has forgotten that it is configured and healthy")
	}
	s.start(was)
	s.want("private data", s.ask(was, "cat", "/var/lib/enginetest"), "former")
}

func replaceSettled(s *suite) {
	keeper, _, is := replaced(s, "settle", 51)
	ref := engine.RefOf(is)
	s.must(keeper.Settle(s.Context(), ref))
	s.must(keeper.Settle(s.Context(), ref))
	s.start(is)
	s.must(keeper.Settle(s.Context(), ref)) // it may run by then
	s.stop(is)
	_ = keeper.Restore(s.Context(), ref) // there is nothing to restore, which must do no harm
	s.want("layer", s.listed(is).Layer, is.Layer)
	s.start(is)
	if s.has(is, "/var/lib/enginetest") {
		s.Error("the former node is still there")
	}
}

// replaceTwice: Restore gives what was there before the last Replace.
func replaceTwice(s *suite) {
	keeper, was, is := replaced(s, "twofold", 52)
	s.start(is)
	s.put(is, fileOf("/var/lib/enginetest", "second"))
	s.stop(is)
	s.must(keeper.Replace(s.Context(), was))
	s.must(keeper.Restore(s.Context(), engine.RefOf(is)))
	s.start(is)
	s.want("private data", s.ask(is, "cat", "/var/lib/enginetest"), "second")
}

// wantRefused: what runs is not replaced.
func wantRefused(s *suite, keeper engine.Keeper, was, is *spec.Node) {
	s.Helper()
	for what, err := range map[string]error{
		"Replace": keeper.Replace(s.Context(), was),
		"Restore": keeper.Restore(s.Context(), engine.RefOf(was)),
	} {
		if problem.Exit(err) != int(problem.Surprise) {
			s.Errorf("%s of a running node is no Surprise: %v", what, err)
		}
	}
	s.want("layer", s.listed(is).Layer, is.Layer)
	s.ask(is, "true")
}
