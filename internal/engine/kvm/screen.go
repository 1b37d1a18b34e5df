package kvm

import (
	"context"
	"net"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/host"
	"orrery/internal/problem"
)

// Screen returns the screen of a machine. Only a machine that boots a foreign disk has one.
func (v views) Screen(ref engine.Ref) host.Screen { return screen{machineOf(v.nodes, ref)} }

type screen struct{ m machine }

// Open connects to the screen of a running machine.
func (s screen) Open(ctx context.Context) (net.Conn, error) { return onScreen(ctx, s.m, openDisplay) }

// Picture returns an image of the screen.
func (s screen) Picture(ctx context.Context) ([]byte, error) {
	return onScreen(ctx, s.m, takePicture)
}

// onScreen calls do with a connection to the monitor of a machine that has a screen.
func onScreen[T any](ctx context.Context, m machine, do func(context.Context, *qmp.Client) (T, error)) (result T,
	err error) {
	switch {
	case !m.HasDisk():
		return result, problem.New(problem.Unable, "node %s has no screen: its system does not use one", m.Ref.Name).
			At(m.Ref.Site).Try("orrery console %s", m.Ref.Name)
	case !m.running():
		return result, engine.NotRunning(m.Ref)
	case m.Group().Frozen():
		return result, problem.New(problem.Failed, "node %s is frozen, and its screen with it", m.Ref.Name).At(m.Ref.Site).
			Try("orrery start %s", m.Ref.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, monitorTimeout)
	defer cancel()
	err = m.withMonitor(ctx, func(q *qmp.Client) (err error) {
		result, err = do(ctx, q)
		return err
	})
	if err != nil {
		err = problem.New(problem.Failed, "the screen of node %s does not answer", m.Ref.Name).At(m.Ref.Site).Because(err).
			Try("orrery status; a machine started by an earlier version of Orrery has no screen until orrery restart %s",
				m.Ref.Name)
	}
	return result, err
}
