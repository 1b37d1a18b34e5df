package host

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"orrery/internal/tree"
)

// Exchange swaps two files or directories of one file system in one step (renameat2(2)), so that
// there is one in each place at every moment.
func Exchange(a, b string) error {
	if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
		return &os.LinkError{Op: "exchange", Old: a, New: b, Err: err}
	}
	return nil
}

// Replace puts a file or directory in the place of another, which is removed: only once the new one
// is there, and in one step where the file system can.
func Replace(fresh, to string) error {
	err := Exchange(fresh, to)
	switch {
	case err == nil:
		return os.RemoveAll(fresh)
	case errors.Is(err, unix.ENOENT): // nothing was there
		return os.Rename(fresh, to)
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS): // a file system that cannot: NFS
		return replaceInSteps(fresh, to)
	}
	return err
}

// ReplaceParts puts a directory that was made beside it in its place or, if it is there, some of
// its parts in place of the former ones.
func ReplaceParts(fresh, to string, parts ...string) error {
	if _, err := os.Stat(to); errors.Is(err, os.ErrNotExist) {
		return os.Rename(fresh, to)
	}
	for _, part := range parts {
		if _, err := os.Lstat(filepath.Join(fresh, part)); errors.Is(err, os.ErrNotExist) {
			continue // it has no such part
		}
		if err := Replace(filepath.Join(fresh, part), filepath.Join(to, part)); err != nil {
			return err
		}
	}
	return os.RemoveAll(fresh)
}

func replaceInSteps(fresh, to string) error {
	old := fresh + "-old"
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	if err := os.Rename(to, old); err != nil {
		return err
	}
	if err := os.Rename(fresh, to); err != nil {
		return errors.Join(err, os.Rename(old, to))
	}
	return os.RemoveAll(old)
}

// WriteJSON writes a file of this machine that holds JSON for people to read, too; whole or not at all.
func WriteJSON(path string, mode uint32, x any) error {
	text, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(File{Path: path, Content: append(text, '\n'), Mode: mode})
}

// ReadJSON reads a file of this machine that holds JSON.
func ReadJSON[T any](path string) (x T, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &x)
	}
	return x, err
}

// WriteFile writes a file of this machine whole or not at all. Its owner must be numeric or empty.
func WriteFile(f File) error {
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
		return err
	}
	if f.Link != "" {
		return renameio.Symlink(f.Link, f.Path)
	}
	uid, gid := 0, 0
	if f.Owner != "" {
		if _, err := fmt.Sscanf(f.Owner, "%d:%d", &uid, &gid); err != nil {
			return fmt.Errorf("owner %q of %s is not numeric", f.Owner, f.Path)
		}
	}
	pending, err := renameio.NewPendingFile(f.Path, renameio.WithPermissions(os.FileMode(f.Mode)), renameio.IgnoreUmask())
	if err != nil {
		return err
	}
	defer pending.Cleanup() //nolint:errcheck // after success there is nothing to clean up
	if os.Geteuid() == 0 {
		if err := pending.Chown(uid, gid); err != nil {
			return err
		}
	}
	if f.Mode&0o7000 != 0 { // which Go has elsewhere in a mode, and the kernel takes away with the former owner
		if err := unix.Fchmod(int(pending.Fd()), f.Mode&0o7777); err != nil {
			return &os.PathError{Op: "chmod", Path: f.Path, Err: err}
		}
	}
	if _, err := pending.Write(f.Content); err != nil {
		return err
	}
	err = pending.CloseAtomicallyReplace()
	if f.Mode&0o111 != 0 { // it may be run at once
		tree.UntilClosed(unix.AT_FDCWD, f.Path)
	}
	return err
}

// WriteNamed writes a file that the user has named. A regular file is replaced, whole or not at
// all. Into what is not, such as a device or a named pipe, the content is written, and links are
// followed, as a shell does: /dev/stdout is a link.
func WriteNamed(path string, content []byte, mode os.FileMode) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().IsRegular() || info.IsDir() { // of which the error says what it is
		return WriteFile(File{Path: path, Content: content, Mode: uint32(mode)})
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return cmp.Or(err, f.Close())
}
