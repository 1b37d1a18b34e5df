package network

import (
	"context"
	"errors"
	"io/fs"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// lockPath is locked while networks are changed.
const (
	lockPath = "/run/orrery/network.lock"
	lockName = "the lock of this machine's networks"
)

// lock waits until no other process of this host changes networks.
func lock(ctx context.Context, how host.LockMode) (unlock func(), err error) {
	l, err := host.WaitLock(ctx, lockPath, how, lockName)
	if errors.Is(err, fs.ErrPermission) {
		return nil, problem.New(problem.Unable, "networks can be changed by root only").Because(err).Try("run orrery as root")
	}
	if err != nil {
		return nil, err
	}
	return l.Release, nil
}
