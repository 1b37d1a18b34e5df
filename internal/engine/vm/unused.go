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

// A diskUser is the part of a guest's agent that knows what uses the guest's disks.
type diskUser interface {
	CheckDisksUnused(ctx context.Context, serials []string) error
}

// unusedTimeout limits how long a guest may take to answer whether it uses its disks.
const unusedTimeout = time.Minute

// CheckUnused returns an error unless the guest of a machine answers that it does not use the disks. The
// check is needed because QEMU only asks the guest's kernel to release a disk, and Linux releases
// even a mounted disk and loses unwritten data.
func (a *Agents) CheckUnused(ctx context.Context, m Machine, disks []site.Drive) error {
	return checkUnused(ctx, m, disks, func(ctx context.Context) (diskUser, error) { return a.Connect(ctx, m.Ref) })
}

func checkUnused(ctx context.Context, m Machine, disks []site.Drive,
	agent func(context.Context) (diskUser, error)) error {
	if len(disks) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, unusedTimeout, errors.New("its agent does not answer"))
	defer cancel()
	user, err := agent(ctx)
	for i := 0; err == nil && i < len(disks); i++ {
		if err = user.CheckDisksUnused(ctx, []string{disks[i].Name}); err != nil {
			return inUseProblem(m, disks[i], err)
		}
	}
	if err != nil {
		return inUseProblem(m, disks[0], err)
	}
	return nil
}

// inUseProblem returns the problem that a disk is or may be in use.
func inUseProblem(m Machine, d site.Drive, err error) *problem.Problem {
	const orElse = ", and run the same command again"
	var used *rpc.InUse
	switch {
	case errors.As(err, &used):
		return problem.New(problem.Failed, "node %s: disk %s is in use by %s", m.Ref.Name, d.Name, SanitizeUsers(used.By)).
			At(m.Ref.Site).
			Try("unmount it in the node"+orElse+"; or orrery stop %s"+orElse, m.Ref.Name)
	case problem.Is(err, problem.Unable): // the answer of an agent that does not know the request
		return problem.New(problem.Failed,
			"node %s: its guest agent is from an earlier version of Orrery and cannot report whether disk %s is in use",
			m.Ref.Name, d.Name).
			At(m.Ref.Site).Try("orrery restart %s"+orElse, m.Ref.Name)
	}
	return m.DiskProblem(d, "may be in use: its guest did not answer", err).Try("orrery stop %s"+orElse, m.Ref.Name)
}

// MaxUsersBytes limits the size of a guest's answer to what uses a volume or a disk.
const MaxUsersBytes = 4 << 10

// SanitizeUsers returns a guest's answer to what uses a volume or a disk, as sanitized text for a
// message.
func SanitizeUsers(says string) string {
	says = sanitize.Line(says)
	switch {
	case says == "":
		return "a process unknown to the guest's kernel"
	case len(says) > MaxUsersBytes:
		return says[:MaxUsersBytes] + "…"
	}
	return says
}
