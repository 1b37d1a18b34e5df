package volume

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"orrery/internal/tree"
)

// file copies an entry that is not a directory.
func (r *round) file(e *tree.Entry, k *known, current state, same bool) error {
	id := file{current.device, current.inode}
	first := r.first[id]
	if !current.several() {
		first = nil
	}
	switch {
	case same && (first == nil || first.as == k.as):
		k.met = r.rounds
		if first == nil && current.several() {
			r.first[id] = k
		}
		return nil
	case first != nil:
		return r.link(e, k, first)
	}
	return r.fresh(e, k)
}

// fresh makes the file again.
func (r *round) fresh(e *tree.Entry, k *known) error {
	if k != nil {
		if err := r.drop(k); err != nil {
			return err
		}
	}
	dir, err := r.here()
	if err != nil {
		return err
	}
	made := &known{name: e.Name, state: stateOf(&e.Stat)}
	switch e.Stat.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		made.state, err = r.regular(e, dir)
	case unix.S_IFLNK:
		var says string
		if says, err = tree.ReadLink(e.Dir, e.Name); err == nil {
			err = wrote(e.Name, unix.Symlinkat(says, dir, e.Name))
		}
	default: // a named pipe, or a whiteout
		err = wrote(e.Name, unix.Mknodat(dir, e.Name, e.Stat.Mode&unix.S_IFMT|0o600, 0))
	}
	if err == nil && made.mode&unix.S_IFMT != unix.S_IFREG {
		var attrs map[string][]byte
		if attrs, err = tree.Attributes(e.Dir, e.Name); err == nil {
			err = r.dress(e.Path, dir, e.Name, &e.Stat, attrs)
		}
	}
	if err == nil && made.several() {
		err = r.several(made, dir)
	}
	if err != nil {
		return r.failed(e, dir, err)
	}
	r.keep(made)
	return nil
}

// failed handles an error of copying an entry. An entry that vanished is left out of the copy. An
// entry that cannot be read is recorded as omitted. Everything else is an error.
func (r *round) failed(e *tree.Entry, dir int, err error) error {
	var inCopy *unwritten
	gone := tree.Vanished(err)
	closed := errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOKEY)
	switch {
	case errors.As(err, &inCopy):
	case gone && r.still:
		err = changed()
	case closed:
		r.leave(e.Path, "it cannot be read: "+err.Error())
		fallthrough
	case gone:
		return tree.RemoveAllAt(dir, e.Name)
	}
	return fmt.Errorf("%s: %w", tree.Shorten(e.Path), err)
}

// regular copies a regular file, and returns the state that it had when it was opened.
func (r *round) regular(e *tree.Entry, dir int) (state, error) {
	from, st, err := tree.OpenEntry(e.Dir, e.Name)
	if err != nil {
		return state{}, err
	}
	defer unix.Close(from) //nolint:errcheck // it was only read
	to, err := unix.Openat(dir, e.Name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return state{}, wrote(e.Name, err)
	}
	defer unix.Close(to) //nolint:errcheck // all of it is brought to disk at the end
	if err := r.content(to, from, &st); err != nil {
		return state{}, err
	}
	attrs, err := tree.FileAttributes(from)
	if err != nil {
		return state{}, err
	}
	var now unix.Stat_t
	if err := unix.Fstat(from, &now); err != nil {
		return state{}, err
	}
	if r.still && stateOf(&now) != stateOf(&st) {
		return state{}, changed()
	}
	return stateOf(&st), r.dress(e.Path, dir, e.Name, &st, attrs)
}

// content copies the content of a file into a new one. It shares the blocks if possible.
func (r *round) content(to, from int, st *unix.Stat_t) error {
	if st.Size == 0 {
		return nil
	}
	if st.Size >= r.least && !r.unshared[st.Dev] {
		err := tree.Share(to, from)
		if err == nil {
			r.shared = true
			return nil
		}
		if !errors.Is(err, unix.ENOSPC) {
			r.unshared[st.Dev] = !errors.Is(err, unix.EINVAL) // EINVAL concerns only this file
		}
	}
	r.size += st.Size
	if err := r.room(to, min(st.Size, st.Blocks*512)); err != nil {
		return err
	}
	return wrote("", tree.CopyContent(r.ctx, to, from, st, nil))
}

// several records the first copy of a file that has other names.
func (r *round) several(k *known, dir int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, k.name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return wrote(k.name, err)
	}
	k.as = st.Ino
	r.first[file{k.device, k.inode}] = k
	return nil
}

// link adds another name to a file of the copy.
func (r *round) link(e *tree.Entry, k, first *known) error {
	if k != nil {
		if err := r.drop(k); err != nil {
			return err
		}
	}
	dir, err := r.here()
	if err != nil {
		return err
	}
	from := dir
	if first.up != r.in().known {
		if from, err = r.links.open(r.copied, first.up); err != nil {
			return wrote(first.name, err)
		}
	}
	err = unix.Linkat(from, first.name, dir, e.Name, 0)
	if errors.Is(err, unix.EMLINK) { // the file cannot have more names here: make another file
		return r.fresh(e, nil)
	}
	if err != nil {
		return wrote(e.Name, err)
	}
	// The new name has the first one's state. If the file has changed since then, both are copied
	// again.
	r.keep(&known{name: e.Name, state: first.state, as: first.as})
	return nil
}

// opened is an open directory of the copy.
type opened struct {
	of *known
	fd int
}

// open opens a directory of the copy and closes the previous one, unless it is the same.
func (o *opened) open(copied *tree.Root, of *known) (int, error) {
	if o.fd >= 0 && o.of == of {
		return o.fd, nil
	}
	o.close()
	fd, err := copied.OpenDown(of.path())
	if err != nil {
		return -1, err
	}
	o.of, o.fd = of, fd
	return fd, nil
}

func (o *opened) close() {
	if o.fd >= 0 {
		unix.Close(o.fd) //nolint:errcheck // it was only gone through
		o.fd = -1
	}
}

// An unwritten is an error in the copy, not in the source.
type unwritten struct {
	name string
	err  error
}

func (u *unwritten) Error() string {
	if u.name == "" {
		return u.err.Error()
	}
	return (&os.PathError{Op: "copy", Path: u.name, Err: u.err}).Error()
}
func (u *unwritten) Unwrap() error { return u.err }
