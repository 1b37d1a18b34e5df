package kvm

import (
	"context"
	"errors"
	"time"

	"orrery/internal/engine/vm"
	"orrery/internal/problem"
	"orrery/internal/transport/rpc"
)

// A minder is the agent of a guest, in so far as it minds volumes. The guest mounts by itself,
// where it comes upon it, what is mounted in the root that virtiofsd gives to it.
type minder interface {
	Forget(ctx context.Context, places []string) error
	Find(ctx context.Context, places []string) error
}

// minder returns that of a running machine.
func (g *guests) minder(m machine) func(context.Context) (minder, error) {
	return func(ctx context.Context) (minder, error) { return g.agents.Of(ctx, m.Ref) }
}

// telling is how long a guest may take to do so.
const telling = 2 * time.Minute

// forget lets the guest unmount what it has mounted at some places, the innermost first. What it
// says of it is not relied upon: virtiofsd then holds the volume, or it does not.
func (s *remounting) forget(ctx context.Context, places []string) error {
	return s.tell(ctx, func(ctx context.Context, to minder) error { return to.Forget(ctx, places) })
}

// find lets the guest find what is mounted at some places now.
func (s *remounting) find(ctx context.Context, places []string) error {
	return s.tell(ctx, func(ctx context.Context, to minder) error { return to.Find(ctx, places) })
}

// tell tells the guest something, and says what comes of it.
func (s *remounting) tell(ctx context.Context, what func(context.Context, minder) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, telling, errors.New("its agent does not answer"))
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
		return problem.New(problem.Failed, "node %s: a volume is in use by %s", s.m.Ref.Name, vm.Whoever(used.By)).
			At(s.m.Ref.Site).Try("stop what uses it and run the same command again")
	case problem.Is(err, problem.Unable): // no other agent says so of this
		return problem.New(problem.Failed,
			"node %s: the agent of its guest is of a former version of orrery, and cannot change volumes", s.m.Ref.Name).
			At(s.m.Ref.Site).
			Try("orrery restart %s, and run the same command again", s.m.Ref.Name)
	}
	return problem.New(problem.Failed, "node %s: its guest does not change its volumes", s.m.Ref.Name).At(s.m.Ref.Site).
		Because(err)
}
