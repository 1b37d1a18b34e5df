package engine

import (
	"context"
	"io"
	"path/filepath"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// OpenConsole connects to the console of a running node and locks it against other users. run is
// the directory for files of the running node. The error if the console does not answer suggests
// cure.
func OpenConsole(ctx context.Context, ref Ref, run string, by host.Holder, cure string,
	connect func() (io.ReadWriteCloser, error)) (io.ReadWriteCloser, error) {
	held, err := lockConsole(ctx, ref, run, by)
	if err != nil {
		return nil, err
	}
	conn, err := connect()
	if err != nil {
		held.Release()
		return nil, problem.New(problem.Failed, "the console of node %s does not answer", ref.Name).At(ref.Site).
			Because(err).Try("%s", cure)
	}
	return lockedConsole{conn, held}, nil
}

// lockedConsole is a connection to a console that holds the lock of the console.
type lockedConsole struct {
	io.ReadWriteCloser
	held *host.Lock
}

func (l lockedConsole) Close() error {
	defer l.held.Release()
	return l.ReadWriteCloser.Close()
}

// lockConsole locks the console of a running node, by a lock file in run.
func lockConsole(ctx context.Context, ref Ref, run string, by host.Holder) (*host.Lock, error) {
	path := filepath.Join(run, "console.lock")
	held, err := host.TakeLock(ctx, path, by)
	if problem.Is(err, problem.Locked) {
		return nil, problem.New(problem.Locked, "the console of node %s is in use: %s", ref.Name, host.DescribeHolder(path)).
			At(ref.Site).
			Try("wait, or end that process; orrery console --log %s shows its output", ref.Name)
	}
	return held, err
}
