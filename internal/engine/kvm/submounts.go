package kvm

import (
	"context"
	"errors"
	"time"

	"orrery/internal/engine/vm"
	"orrery/internal/problem"
	"orrery/internal/transport/rpc"
)

// A volumeAgent is the part of a guest's agent that handles volumes. The guest itself mounts each file
// system in virtiofsd's root when it accesses it.
type volumeAgent interface {
	Unmount(ctx context.Context, places []string) error
	RefreshMounts(ctx context.Context, places []string) error
}

// volumeAgent returns a function that connects to the agent of a running machine.
func (g *guests) volumeAgent(m machine) func(context.Context) (volumeAgent, error) {
	return func(ctx context.Context) (volumeAgent, error) { return g.agents.Connect(ctx, m.Ref) }
}

// volumeTimeout limits how long a guest may take for a change of volumes.
const volumeTimeout = 2 * time.Minute

// unmountInGuest makes the guest unmount the file systems at the places, innermost first. The caller does
// not rely on the guest's answer: the host's unmount fails if virtiofsd still holds a volume.
func (s *remounting) unmountInGuest(ctx context.Context, places []string) error {
	return s.callAgent(ctx, func(ctx context.Context, to volumeAgent) error { return to.Unmount(ctx, places) })
}

// findInGuest makes the guest find what is now mounted at the places.
func (s *remounting) findInGuest(ctx context.Context, places []string) error {
	return s.callAgent(ctx, func(ctx context.Context, to volumeAgent) error { return to.RefreshMounts(ctx, places) })
}

// callAgent sends the guest's agent a request and translates its errors into problems.
func (s *remounting) callAgent(ctx context.Context, what func(context.Context, volumeAgent) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, volumeTimeout, errors.New("its agent does not answer"))
	defer cancel()
	to, err := s.agent(ctx)
	if err == nil {
		err = what(ctx, to)
	}
	var used *rpc.InUse
	switch {
	case err == nil:
		return nil
	case errors.As(err, &used):
		return problem.New(problem.Failed, "node %s: a volume is in use by %s", s.m.Ref.Name, vm.SanitizeUsers(used.By)).
			At(s.m.Ref.Site).Try("stop what uses it and run the same command again")
	case problem.Is(err, problem.Unable): // the agent returns Unable only for an unknown request
		return problem.New(problem.Failed,
			"node %s: its guest agent is from an earlier version of Orrery and cannot change volumes", s.m.Ref.Name).
			At(s.m.Ref.Site).
			Try("orrery restart %s, and run the same command again", s.m.Ref.Name)
	}
	return problem.New(problem.Failed, "node %s: the guest agent could not change its volumes", s.m.Ref.Name).At(s.m.Ref.Site).
		Because(err)
}
