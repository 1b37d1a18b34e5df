package enginetest

import (
	"slices"

	"orrery/internal/engine"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

func routed(s *suite)    { onKind(s, site.Routed, 90) }
func macvlan(s *suite)   { onKind(s, site.Macvlan, 93) }
func exclusive(s *suite) { onKind(s, site.Exclusive, 96) }

// onKind: nodes on a network of a kind reach one another and the host's address there, even after
// one was stopped or has rebooted by itself. In quarantine they are on a bridge.
func onKind(s *suite, kind string, id int) {
	if s.ConnectToKind == nil {
		s.Skip("there are but bridges")
	}
	if s.Kinds != nil && !slices.Contains(s.Kinds, kind) {
		s.Skip("nodes of the engine cannot be on " + kind + " networks, which check says of a site file")
	}
	a, b, far := s.Node(kind+"a", id), s.Node(kind+"b", id+1), s.Node(kind+"far", id+2)
	s.ConnectToKind(s.T, a, kind)
	s.ConnectToKind(s.T, b, kind)
	for _, n := range []*spec.Node{a, b} {
		s.create(n)
		s.start(n)
	}
	connected := func() {
		s.Helper()
		for _, n := range []*spec.Node{a, b} {
			// In an exclusive network, the node has the hardware address of the host's interface.
			if kind != site.Exclusive {
				wantIdentity(s, n)
			}
			if got := s.listed(n).NICs[0]; got != n.NICs[0] {
				s.Errorf("listed is %+v, not %+v", got, n.NICs[0])
			}
			if gateway := n.NICs[0].Gateway; gateway != "" {
				wantAnswer(s, n, gateway)
			}
		}
		wantReach(s, a, b, far)
		wantReach(s, b, a, far)
	}
	connected()
	s.stop(b)
	s.start(b)
	connected()
	if s.Reboot != nil {
		s.Reboot(s.T, engine.RefOf(b))
		connected()
	}
	if s.Bridge == "" {
		return
	}
	s.ConnectToKind(s.T, far, kind)
	far.NICs[0].Bridge, far.Staged = s.Bridge, true
	s.create(far)
	s.start(far)
	apart := *a
	apart.NICs = append([]spec.NIC(nil), a.NICs...)
	apart.NICs[0].Bridge, apart.Staged = s.Bridge, true
	if err := s.Engine.Change(s.Context(), &apart); err == nil || problem.ExitCode(err) != int(problem.Surprise) {
		s.Errorf("a node that runs can be moved from a %s network to a bridge: %v", kind, err)
	}
	s.stop(a)
	s.must(s.Engine.Change(s.Context(), &apart))
	s.start(a)
	s.want("listed bridge", s.listed(a).NICs[0].Bridge, s.Bridge)
	wantReach(s, a, far, b)
	s.stop(a)
	s.must(s.Engine.Change(s.Context(), a))
	s.start(a)
	connected()
}
