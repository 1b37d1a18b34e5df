package enginetest

import (
	"context"
	"slices"
	"time"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// moveNIC: the link of a running node moves to another bridge, and its processes continue.
func moveNIC(s *suite) {
	if !s.Engine.Capabilities().MoveNIC {
		s.Skip("the engine does not move interfaces of a running node")
	}
	if s.Bridge == "" {
		s.Skip("there is but one bridge")
	}
	n, near, far := s.running("moved", 80), s.running("near", 81), s.Node("far", 82)
	far.NICs[0].Bridge = s.Bridge
	s.create(far)
	s.start(far)
	wantReach(s, n, near, far)
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.runner(n).Run(ctx, commandOf("sleep", "3600")) }()

	before := n.NICs[0].Bridge
	n.NICs[0].Bridge, n.Staged = s.Bridge, true
	for range 2 {
		s.must(s.Engine.Change(s.Context(), n))
		o := s.listed(n)
		s.want("listed bridge", o.NICs[0].Bridge, s.Bridge)
		if !o.Staged {
			s.Error("it is not listed as staged")
		}
	}
	wantReach(s, n, far, near)
	wantReach(s, near, nil, n)
	wantIdentity(s, n)
	n.NICs[0].Bridge, n.Staged = before, false
	s.must(s.Engine.Change(s.Context(), n))
	wantReach(s, n, near, far)
	select {
	case err := <-ended:
		s.Errorf("a command ended when the link was moved: %v", err)
	default:
	}
	n.NICs[0].Bridge = s.Bridge
	s.must(s.Engine.Change(s.Context(), n))
	s.stop(n)
	s.start(n)
	s.want("listed bridge after a restart", s.listed(n).NICs[0].Bridge, s.Bridge)
	wantReach(s, n, far, near)
}

// moveNowhere: a link that cannot be moved stays where it is.
func moveNowhere(s *suite, n *spec.Node) {
	if !s.Engine.Capabilities().MoveNIC || !s.Kernel {
		s.Skip("the engine does not move interfaces between bridges of a kernel")
	}
	before := n.NICs[0].Bridge
	changed := *n
	changed.NICs = slices.Clone(n.NICs)
	changed.NICs[0].Bridge = site.BridgeName(n.Site, "no such network")
	if err := s.Engine.Change(s.Context(), &changed); err == nil {
		s.Error("a link can be moved to a bridge that is not there")
	}
	s.want("listed bridge", s.listed(n).NICs[0].Bridge, before)
}

// wantReach asks whether a node reaches one peer and not the other.
func wantReach(s *suite, n, peer, stranger *spec.Node) {
	s.Helper()
	if peer != nil {
		wantAnswer(s, n, peer.NICs[0].Address.Addr().String())
	}
	if ping(s, n, stranger.NICs[0].Address.Addr().String()) == nil {
		s.Errorf("node %s reaches node %s", n.Name, stranger.Name)
	}
}

// wantAnswer asks an address from a node until it answers.
func wantAnswer(s *suite, n *spec.Node, address string) {
	s.Helper()
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := ping(s, n, address)
		if err == nil {
			return
		}
		if time.Since(begun) > s.within()/4 {
			s.Errorf("node %s does not reach %s: %v", n.Name, address, err)
			return
		}
	}
}

func ping(s *suite, n *spec.Node, address string) error {
	return s.runner(n).Run(s.Context(), commandOf("ping", "-n", "-c", "1", "-W", "1", address))
}
