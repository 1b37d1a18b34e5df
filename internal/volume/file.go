package volume

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"orrery/internal/tree"
)

// copyEntry copies an entry that is not a directory.
func (r *round) copyEntry(e *tree.Entry, k *copiedEntry, current fileState, same bool) error {
	id := inodeID{current.device, current.inode}
	first := r.first[id]
	if !current.hasOtherNames() {
		first = nil
	}
	switch {
	case same && (first == nil || first.as == k.as):
		k.met = r.rounds
		if first == nil && current.hasOtherNames() {
			r.first[id] = k
		}
		return nil
	case first != nil:
		return r.addLink(e, k, first)
	}
	return r.recreate(e, k)
}

// recreate makes the file again.
func (r *round) recreate(e *tree.Entry, k *copiedEntry) error {
	if k != nil {
		if err := r.removeCopied(k); err != nil {
			return err
		}
	}
	dir, err := r.openCurrent()
	if err != nil {
		return err
	}
	made := &copiedEntry{name: e.Name, fileState: stateOf(&e.Stat)}
	switch e.Stat.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		made.fileState, err = r.copyRegular(e, dir)
	case unix.S_IFLNK:
		var says string
		if says, err = tree.ReadLink(e.Dir, e.Name); err == nil {
			err = asCopyError(e.Name, unix.Symlinkat(says, dir, e.Name))
		}
	default: // a named pipe, or a whiteout
		err = asCopyError(e.Name, unix.Mknodat(dir, e.Name, e.Stat.Mode&unix.S_IFMT|0o600, 0))
	}
	if err == nil && made.mode&unix.S_IFMT != unix.S_IFREG {
		var attrs map[string][]byte
		if attrs, err = tree.Attributes(e.Dir, e.Name); err == nil {
			err = r.setMetadata(e.Path, dir, e.Name, &e.Stat, attrs)
		}
	}
	if err == nil && made.hasOtherNames() {
		err = r.recordFirst(made, dir)
	}
	if err != nil {
		return r.handleError(e, dir, err)
	}
	r.recordCopied(made)
	return nil
}

// handleError handles an error of copying an entry. An entry that vanished is left out of the copy. An
// entry that cannot be read is recorded as omitted. Everything else is an error.
func (r *round) handleError(e *tree.Entry, dir int, err error) error {
	var inCopy *copyError
	gone := tree.IsGone(err)
	closed := errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOKEY)
	switch {
	case errors.As(err, &inCopy):
	case gone && r.still:
		err = changedError()
	case closed:
		r.recordSkipped(e.Path, "it cannot be read: "+err.Error())
		fallthrough
	case gone:
		return tree.RemoveAllAt(dir, e.Name)
	}
	return fmt.Errorf("%s: %w", tree.DisplayPath(e.Path), err)
}

// copyRegular copies a regular file, and returns the state that it had when it was opened.
func (r *round) copyRegular(e *tree.Entry, dir int) (fileState, error) {
	from, st, err := tree.OpenEntry(e.Dir, e.Name)
	if err != nil {
		return fileState{}, err
	}
	defer unix.Close(from) //nolint:errcheck // it was only read
	to, err := unix.Openat(dir, e.Name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fileState{}, asCopyError(e.Name, err)
	}
	defer unix.Close(to) //nolint:errcheck // all of it is brought to disk at the end
	if err := r.copyContent(to, from, &st); err != nil {
		return fileState{}, err
	}
	attrs, err := tree.FileAttributes(from)
	if err != nil {
		return fileState{}, err
	}
	var now unix.Stat_t
	if err := unix.Fstat(from, &now); err != nil {
		return fileState{}, err
	}
	if r.still && stateOf(&now) != stateOf(&st) {
		return fileState{}, changedError()
	}
	return stateOf(&st), r.setMetadata(e.Path, dir, e.Name, &st, attrs)
}

// copyContent copies the content of a file into a new one. It shares the blocks if possible.
func (r *round) copyContent(to, from int, st *unix.Stat_t) error {
	if st.Size == 0 {
		return nil
	}
	if st.Size >= r.least && !r.unshared[st.Dev] {
		err := tree.Reflink(to, from)
		if err == nil {
			r.shared = true
			return nil
		}
		if !errors.Is(err, unix.ENOSPC) {
			r.unshared[st.Dev] = !errors.Is(err, unix.EINVAL) // EINVAL concerns only this file
		}
	}
	r.size += st.Size
	if err := r.checkSpace(to, min(st.Size, st.Blocks*512)); err != nil {
		return err
	}
	return asCopyError("", tree.CopyContent(r.ctx, to, from, st, nil))
}

// recordFirst records the first copy of a file that has other names.
func (r *round) recordFirst(k *copiedEntry, dir int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, k.name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return asCopyError(k.name, err)
	}
	k.as = st.Ino
	r.first[inodeID{k.device, k.inode}] = k
	return nil
}

// addLink adds another name to a file of the copy.
func (r *round) addLink(e *tree.Entry, k, first *copiedEntry) error {
	if k != nil {
		if err := r.removeCopied(k); err != nil {
			return err
		}
	}
	dir, err := r.openCurrent()
	if err != nil {
		return err
	}
	from := dir
	if first.up != r.currentFrame().copiedEntry {
		if from, err = r.links.open(r.copied, first.up); err != nil {
			return asCopyError(first.name, err)
		}
	}
	err = unix.Linkat(from, first.name, dir, e.Name, 0)
	if errors.Is(err, unix.EMLINK) { // the file cannot have more names here: make another file
		return r.recreate(e, nil)
	}
	if err != nil {
		return asCopyError(e.Name, err)
	}
	// The new name has the first one's state. If the file has changed since then, both are copied
	// again.
	r.recordCopied(&copiedEntry{name: e.Name, fileState: first.fileState, as: first.as})
	return nil
}

// openDir is an open directory of the copy.
type openDir struct {
	of *copiedEntry
	fd int
}

// open opens a directory of the copy and closes the previous one, unless it is the same.
func (o *openDir) open(copied *tree.Root, of *copiedEntry) (int, error) {
	if o.fd >= 0 && o.of == of {
		return o.fd, nil
	}
	o.close()
	fd, err := copied.OpenNoFollow(of.path())
	if err != nil {
		return -1, err
	}
	o.of, o.fd = of, fd
	return fd, nil
}

func (o *openDir) close() {
	if o.fd >= 0 {
		unix.Close(o.fd) //nolint:errcheck // it was only gone through
		o.fd = -1
	}
}

// A copyError is an error in the copy, not in the source.
type copyError struct {
	name string
	err  error
}

func (u *copyError) Error() string {
	if u.name == "" {
		return u.err.Error()
	}
	return (&os.PathError{Op: "copy", Path: u.name, Err: u.err}).Error()
}
func (u *copyError) Unwrap() error { return u.err }
