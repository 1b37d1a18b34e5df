package local

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"orrery/internal/plan"
	"orrery/internal/problem"
)

// The space reserved for a start. It consists of several files, so that inodes are reserved, too.
const (
	spareFiles     = 8
	spareFileBytes = 128 << 10
)

// prepareSpare reserves space in the directory of a run before it stops a node that will be started
// again, and releases the space before the start. For all other steps, it does nothing.
func prepareSpare(s *plan.Step, run string) error {
	switch s.Kind {
	case plan.StopNode, plan.KillNode:
		if !s.Restarts {
			return nil
		}
		err := reserveSpace(spareDir(run, s.Old.ID))
		if problem.DiskFull(err) {
			return problem.New(problem.Unable, "node %s was not stopped, because there is no room to start it again",
				s.Old.Name).At(run).Because(problem.PathErrorCause(err)).
				Try("make room there, such as by orrery snapshot rm, orrery release prune or orrery image gc, and run the same command again")
		}
		return err
	case plan.StartNode:
		return os.RemoveAll(spareDir(run, s.Node.ID))
	}
	return nil
}

// spareDir returns the directory of the reserved files. Its parent is needed by the start, and stays.
func spareDir(run string, node int) string { return filepath.Join(run, strconv.Itoa(node), "spare") }

func reserveSpace(dir string) error {
	err := os.MkdirAll(dir, 0o700)
	for i := 0; i < spareFiles && err == nil; i++ {
		err = allocate(filepath.Join(dir, strconv.Itoa(i)))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return nil
}

func allocate(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	err = unix.Fallocate(int(f.Fd()), 0, 0, spareFileBytes)
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = nil // the file system does not support this, so the inode must suffice
	}
	if err != nil {
		err = &os.PathError{Op: "fallocate", Path: path, Err: err}
	}
	return errors.Join(err, f.Close())
}
