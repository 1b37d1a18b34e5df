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

// SwapPaths swaps two files or directories of one file system atomically (renameat2(2)), so that
// both paths exist at every moment.
func SwapPaths(a, b string) error {
	if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
		return &os.LinkError{Op: "exchange", Old: a, New: b, Err: err}
	}
	return nil
}

// Replace puts a file or directory in the place of another. It removes the old one only after the
// new one is in place, and swaps them atomically where the file system can.
func Replace(fresh, to string) error {
	err := SwapPaths(fresh, to)
	switch {
	case err == nil:
		return os.RemoveAll(fresh)
	case errors.Is(err, unix.ENOENT): // there was no old one
		return os.Rename(fresh, to)
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS): // the file system cannot exchange files, such as NFS
		return replaceInSteps(fresh, to)
	}
	return err
}

// ReplaceParts moves a directory into place. If the destination exists, it replaces only the named
// parts of it. The new directory must be on the same file system.
func ReplaceParts(fresh, to string, parts ...string) error {
	if _, err := os.Stat(to); errors.Is(err, os.ErrNotExist) {
		return os.Rename(fresh, to)
	}
	for _, part := range parts {
		if _, err := os.Lstat(filepath.Join(fresh, part)); errors.Is(err, os.ErrNotExist) {
			continue // there is no such part
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

// WriteJSON writes a value as indented JSON to a file of this machine, atomically.
func WriteJSON(path string, mode uint32, x any) error {
	text, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(File{Path: path, Content: append(text, '\n'), Mode: mode})
}

// ReadJSON reads a value from a JSON file of this machine.
func ReadJSON[T any](path string) (x T, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &x)
	}
	return x, err
}

// WriteFile writes a file of this machine atomically. Its owner must be numeric or empty.
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
	// os.FileMode stores these bits elsewhere, and the kernel clears them when the owner changes
	if f.Mode&0o7000 != 0 {
		if err := unix.Fchmod(int(pending.Fd()), f.Mode&0o7777); err != nil {
			return &os.PathError{Op: "chmod", Path: f.Path, Err: err}
		}
	}
	if _, err := pending.Write(f.Content); err != nil {
		return err
	}
	err = pending.CloseAtomicallyReplace()
	if f.Mode&0o111 != 0 { // it may be executed at once
		tree.WaitClosed(unix.AT_FDCWD, f.Path)
	}
	return err
}

// WriteNamed writes a file that the user has named. It replaces a regular file atomically. If the
// path is a device, a named pipe or a link, it writes the content into that. It follows links, as a
// shell does, because /dev/stdout is a link.
func WriteNamed(path string, content []byte, mode os.FileMode) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().IsRegular() || info.IsDir() { // for a directory, the error says so
		return WriteFile(File{Path: path, Content: content, Mode: uint32(mode)})
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return cmp.Or(err, f.Close())
}
