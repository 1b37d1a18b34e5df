package vault

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/tree"
)

// A directory is the directory of a repository. It is locked while it is open.
type directory struct {
	dir  string
	root *tree.Root
	lock *os.File
}

// acquire takes the lock of a repository, shared for readers and exclusive for a writer.
func (d *directory) acquire(how host.LockMode) (*os.File, error) {
	f, err := d.root.OpenFile(markName)
	if err != nil {
		return nil, err
	}
	if err := host.Flock(f, how); err != nil {
		f.Close()
		return nil, problem.New(problem.Locked, "another orrery is using this directory of backups").At(d.dir).
			Try("wait for it, or end that process")
	}
	return f, nil
}

// clear removes incomplete files of a run that was killed. The caller must hold the exclusive lock.
func (d *directory) clear() error {
	if err := d.root.RemoveAll("new"); err != nil {
		return err
	}
	for dir, begins := range map[string]string{".": "." + markName, "backups": ".", "index": "."} {
		names, err := d.root.Names(dir, MaxNames)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, name := range names {
			if strings.HasPrefix(name, begins) {
				if err := d.root.Remove(path.Join(dir, name)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Where returns the path of the directory.
func (d *directory) Where() string { return d.dir }

// Close closes the directory and releases its lock.
func (d *directory) Close() error {
	var err error
	if d.lock != nil {
		err = d.lock.Close()
	}
	if d.root != nil {
		err = errors.Join(err, d.root.Close())
	}
	return err
}

// file writes a file atomically. If sync is set, it waits until the file is on disk.
func (d *directory) file(name string, content []byte, sync bool) error {
	uid, gid := os.Geteuid(), os.Getegid()
	f := tree.File{Path: name, Content: content, Uid: uid, Gid: gid, Mode: 0o600, Sync: sync}
	return d.clearing(name, func() error { return d.root.Put(f, uid, gid) })
}

// write writes a file atomically, and waits until it is on disk.
func (d *directory) write(name string, content []byte) error {
	return writeProblem(d.dir, d.file(name, content, true))
}

// clearing calls make. If a directory is where a file belongs, or the other way round, it removes
// that and calls make again. Orrery never writes such files.
func (d *directory) clearing(at string, make func() error) error {
	err := make()
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENOTDIR) {
		if err = d.root.RemoveAll(at); err == nil {
			err = make()
		}
	}
	return err
}

func (d *directory) sync() error {
	return writeProblem(d.dir, unix.Syncfs(d.root.Fd()))
}

// writeProblem returns the problem that a backup cannot be written, or nil if err is nil.
func writeProblem(where string, err error) error {
	if err == nil {
		return nil
	}
	return problem.New(problem.KindOfWriteError(err), "the backup cannot be written").At(where).
		Because(problem.PathErrorCause(err)).
		Try("run the same command again to continue with what was written")
}
