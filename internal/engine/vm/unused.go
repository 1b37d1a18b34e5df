package vm

import (
	"context"
	"errors"
	"time"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/sanitize"
	"orrery/internal/transport/rpc"
)

// A diskUser is the agent of a guest, as far as it knows what uses the guest's disks.
type diskUser interface {
	Unused(ctx context.Context, serials []string) error
}

// unusedTimeout is how long a guest may take to say whether it uses its disks.
const unusedTimeout = time.Minute

// Unused returns an error unless the guest of a machine says that it uses none of some disks. QEMU
// only asks the guest's kernel to release a disk, and Linux releases one that is mounted, too: what
// it has not written yet is lost.
func (a *Agents) Unused(ctx context.Context, m Machine, disks []site.Drive) error {
	return unused(ctx, m, disks, func(ctx context.Context) (diskUser, error) { return a.Of(ctx, m.Ref) })
}

func unused(ctx context.Context, m Machine, disks []site.Drive, agent func(context.Context) (diskUser, error)) error {
	if len(disks) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, unusedTimeout, errors.New("its agent does not answer"))
	defer cancel()
	user, err := agent(ctx)
	for i := 0; err == nil && i < len(disks); i++ {
		if err = user.Unused(ctx, []string{disks[i].Name}); err != nil {
			return stillUsed(m, disks[i], err)
		}
	}
	if err != nil {
		return stillUsed(m, disks[0], err)
	}
	return nil
}

// stillUsed returns the problem with a disk that is in use, or may be.
func stillUsed(m Machine, d site.Drive, err error) *problem.Problem {
	const orElse = ", and run the same command again"
	var used *rpc.InUse
	switch {
	case errors.As(err, &used):
		return problem.New(problem.Failed, "node %s: disk %s is in use by %s", m.Ref.Name, d.Name, Whoever(used.By)).
			At(m.Ref.Site).
			Try("unmount it in the node"+orElse+"; or orrery stop %s"+orElse, m.Ref.Name)
	case problem.Is(err, problem.Unable): // the answer of an agent that does not know the question
		return problem.New(problem.Failed,
			"node %s: the agent of its guest is of a former version of orrery, and cannot tell whether disk %s is in use",
			m.Ref.Name, d.Name).
			At(m.Ref.Site).Try("orrery restart %s"+orElse, m.Ref.Name)
	}
	return m.DiskProblem(d, "may be in use: its guest does not say", err).Try("orrery stop %s"+orElse, m.Ref.Name)
}

// MaxUsersBytes bounds what is reported of who uses a volume or a disk.
const MaxUsersBytes = 4 << 10

// Whoever returns what a guest says of who uses a volume or a disk, as text for a message.
func Whoever(says string) string {
	says = sanitize.Line(says)
	switch {
	case says == "":
		return "something that the guest's kernel does not name"
	case len(says) > MaxUsersBytes:
		return says[:MaxUsersBytes] + "…"
	}
	return says
}
