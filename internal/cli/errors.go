package cli

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// unexpected adds a cure to errors of the system for which no other package has one. For example, a
// full disk can affect everything that writes. It also turns errors caused by Ctrl-C into an
// Interrupted problem, whatever was under way.
func unexpected(ctx context.Context, err error) error {
	if ctx.Err() != nil && problem.ExitCode(err) == int(problem.Failed) &&
		(errors.Is(err, context.Cause(ctx)) || errors.Is(err, ctx.Err())) {
		return problem.New(problem.Interrupted, "interrupted").Because(err).Try("run the same command again")
	}
	var p *problem.Problem
	if err == nil || errors.As(err, &p) && (p.Cure != "" || p.Kind != problem.Failed) {
		return err
	}
	switch {
	case problem.DiskFull(err):
		return problem.New(problem.Unable, "a disk of this host is full").Because(err).
			Try("make room with orrery snapshot rm, orrery release prune, orrery image gc or orrery down, " +
				"and run the same command again")
	case errors.Is(err, unix.EROFS):
		return problem.New(problem.Unable, "a file system of this host is read-only").Because(err).
			Try("check dmesg for damage; mount it for writing and run the same command again")
	case errors.Is(err, unix.EIO):
		return problem.New(problem.Unable, "a disk of this host reports I/O errors").Because(err).
			Try("find it with dmesg, repair it and run the same command again")
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return problem.New(problem.Unable, "too many files are open").Because(err).
			Try("raise the limit with ulimit -n and run the same command again")
	}
	return err
}
