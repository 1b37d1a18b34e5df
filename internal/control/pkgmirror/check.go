package pkgmirror

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"orrery/internal/tree"
)

// digestOf returns the SHA-256 of a file, or "" if it does not exist or is not a regular file.
func digestOf(path string) (string, error) {
	f, err := tree.OpenFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, tree.ErrNotRegular) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// isIntact reports whether a file exists and has the given digest.
func isIntact(path, digest string) (bool, error) {
	actual, err := digestOf(path)
	return actual != "" && actual == digest, err
}

// tmpPrefix is the prefix of temporary files for copies into the mirror.
const tmpPrefix = ".taken-"

// importFile copies a file from a tree that a container writes to into the mirror. It returns the digest
// of the file, or "" if there is no such file, or if its digest differs from want ("" accepts any).
// It copies the file because a process in the container may still have it open and change it later.
// It syncs the copy before renaming it, so that the name never refers to a partial file.
func (m *Mirror) importFile(from *tree.Root, name, to, want string) (digest string, bytes int64, err error) {
	f, err := from.OpenFile(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, tree.ErrNotRegular) || errors.Is(err, unix.ENOTDIR) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	fresh, err := os.CreateTemp(m.Dir, tmpPrefix+"*")
	if err != nil {
		return "", 0, err
	}
	defer os.Remove(fresh.Name()) //nolint:errcheck // it has another name by then, or is of no use
	defer fresh.Close()           //nolint:errcheck // what is of use is closed below
	h := sha256.New()
	if bytes, err = io.Copy(io.MultiWriter(fresh, h), f); err != nil {
		return "", 0, err
	}
	if digest = hex.EncodeToString(h.Sum(nil)); want != "" && digest != want {
		return "", 0, nil
	}
	if err := fresh.Sync(); err != nil {
		return "", 0, err
	}
	if err := fresh.Chmod(0o644); err != nil {
		return "", 0, err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return "", 0, err
	}
	return digest, bytes, os.Rename(fresh.Name(), to)
}
