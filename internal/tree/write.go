package tree

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A File is a file or link to be created.
type File struct {
	Path    string
	Content []byte
	Link    string // make a symbolic link with this target instead
	Uid     int
	Gid     int
	Mode    uint32 // as for chmod(1)
	Sync    bool   // wait until the file is on disk

	Fill     func(*os.File) error // writes content that is too large for Content
	Attrs    map[string][]byte    // extended attributes
	Modified time.Time            // the zero value means now
}

// Put atomically creates a file in the place of an existing file or link. An existing directory is
// an error. Put creates missing parent directories with the mode 0755 and the owner uid and gid.
func (r *Root) Put(f File, uid, gid int) error {
	dir, base, err := maker{&r.topDir, uid, gid}.openParent(f.Path)
	if err != nil {
		return err
	}
	defer unix.Close(dir) //nolint:errcheck // it was only gone through
	fresh := newTemporary()
	err = create(dir, fresh, f)
	if err == nil {
		err = unix.Renameat(dir, fresh, dir, base)
	}
	if err != nil {
		_ = unix.Unlinkat(dir, fresh, 0) // ignore the error: the file may not exist
		return r.pathError("write", f.Path, err)
	}
	if f.Sync {
		return r.pathError("sync", path.Dir(f.Path), syncDirectory(dir))
	}
	return nil
}

// create creates a file or link under a name that does not exist yet.
func create(dir int, name string, f File) error {
	if f.Link != "" {
		if err := unix.Symlinkat(f.Link, dir, name); err != nil {
			return err
		}
		return unix.Fchownat(dir, name, f.Uid, f.Gid, unix.AT_SYMLINK_NOFOLLOW)
	}
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close()
	if f.Fill == nil {
		f.Fill = func(to *os.File) error {
			_, err := to.Write(f.Content)
			return err
		}
	}
	if err := f.Fill(file); err != nil {
		return err
	}
	// Set the owner before the mode: changing the owner clears the set-user-ID bit.
	if err := unix.Fchown(fd, f.Uid, f.Gid); err != nil {
		return err
	}
	if err := unix.Fchmod(fd, f.Mode); err != nil {
		return err
	}
	for attr, value := range f.Attrs { // after the owner, whose change would drop capabilities
		if err := unix.Fsetxattr(fd, attr, value, 0); err != nil {
			return fmt.Errorf("attribute %q: %w", DisplayPath(attr), err)
		}
	}
	if !f.Modified.IsZero() {
		when := unix.NsecToTimespec(f.Modified.UnixNano())
		if err := unix.UtimesNanoAt(dir, name, []unix.Timespec{when, when}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
	}
	if f.Sync {
		if err := file.Sync(); err != nil {
			return err
		}
	}
	err = file.Close()
	if f.Mode&0o111 != 0 { // the file may be executed immediately
		WaitClosed(dir, name)
	}
	return err
}

// SetOwnerMode sets the owner and mode of a file or directory. It does not follow a link.
func (r *Root) SetOwnerMode(name string, uid, gid int, mode uint32) error {
	fd, err := r.open(name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return r.pathError("own", name, err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written to it
	if err := unix.Fchown(fd, uid, gid); err != nil {
		return r.pathError("own", name, err)
	}
	return r.pathError("own", name, unix.Fchmod(fd, mode))
}

// SetModTime sets the modification time of a directory. It follows links inside the tree.
func (r *Root) SetModTime(name string, when unix.Timespec) error {
	fd, err := r.open(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return r.pathError("stamp", name, err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written to it
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, when}
	return r.pathError("stamp", name, unix.UtimesNanoAt(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), times, 0))
}

// Rename moves a file or directory of the tree to another path in it and replaces an existing file.
// It follows neither path if it is a link. The parent directories of both must exist.
func (r *Root) Rename(from, to string) error {
	return r.withParents(from, to, func(old int, name string, dir int, as string) error {
		return r.pathError("rename", from, unix.Renameat(old, name, dir, as))
	})
}

// RenameNoReplace is like Rename, but an existing target is an error whose cause is fs.ErrExist.
func (r *Root) RenameNoReplace(from, to string) error {
	return r.withParents(from, to, func(old int, name string, dir int, as string) error {
		err := unix.Renameat2(old, name, dir, as, unix.RENAME_NOREPLACE)
		if errors.Is(err, unix.EINVAL) { // the file system does not support RENAME_NOREPLACE
			var st unix.Stat_t
			if unix.Fstatat(dir, as, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
				return r.pathError("rename", to, unix.EEXIST)
			}
			err = unix.Renameat(old, name, dir, as)
		}
		return r.pathError("rename", to, err)
	})
}

// withParents opens the parent directories of two paths of the tree and calls do with them and the last
// parts of the paths.
func (r *Root) withParents(from, to string, do func(old int, name string, dir int, as string) error) error {
	old, err := r.open(path.Dir(relative(from)), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return r.pathError("rename", from, err)
	}
	defer unix.Close(old) //nolint:errcheck // it was only gone through
	dir, err := r.open(path.Dir(relative(to)), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return r.pathError("rename", to, err)
	}
	defer unix.Close(dir) //nolint:errcheck // it was only gone through
	return do(old, path.Base(relative(from)), dir, path.Base(relative(to)))
}

// newTemporary returns a name for a file that is not complete yet.
func newTemporary() string { return temporaryPrefix + rand.Text()[:12] }

const temporaryPrefix = ".orrery-"

// IsTemporary reports whether a name is that of a file that is not complete yet.
func IsTemporary(name string) bool {
	random, ok := strings.CutPrefix(name, temporaryPrefix)
	return ok && len(random) == 12 && strings.Trim(random, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

func syncDirectory(dir int) error {
	if err := unix.Fsync(dir); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}
