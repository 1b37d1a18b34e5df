package engine

import (
	"context"
	"io"
	"path/filepath"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// OpenConsole connects to the console of a node that runs, for as long as nobody else has it; cure
// is what to look at if it does not answer.
func OpenConsole(ctx context.Context, ref Ref, run string, by host.Holder, cure string,
	connect func() (io.ReadWriteCloser, error)) (io.ReadWriteCloser, error) {
	held, err := takeConsole(ctx, ref, run, by)
	if err != nil {
		return nil, err
	}
	conn, err := connect()
	if err != nil {
		held.Release()
		return nil, problem.New(problem.Failed, "the console of node %s does not answer", ref.Name).At(ref.Site).
			Because(err).Try("%s", cure)
	}
	return line{conn, held}, nil
}

// line is a connection to a console, and the right to have it.
type line struct {
	io.ReadWriteCloser
	held *host.Lock
}

func (l line) Close() error {
	defer l.held.Release()
	return l.ReadWriteCloser.Close()
}

// takeConsole takes the right to have the console of a node that runs, by a lock in the directory
// of what is there while it does.
func takeConsole(ctx context.Context, ref Ref, run string, by host.Holder) (*host.Lock, error) {
	path := filepath.Join(run, "console.lock")
	held, err := host.TakeLock(ctx, path, by)
	if problem.Is(err, problem.Locked) {
		return nil, problem.New(problem.Locked, "the console of node %s is taken: %s", ref.Name, host.HeldBy(path)).
			At(ref.Site).
			Try("wait, or end that process; orrery console --log %s shows what is printed on it", ref.Name)
	}
	return held, err
}
