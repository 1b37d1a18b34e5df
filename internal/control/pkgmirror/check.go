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

// digestOf returns the SHA-256 of a file; "" if it is not there, or is no regular file.
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

// intact reports whether a file is there and has a digest.
func intact(path, digest string) (bool, error) {
	actual, err := digestOf(path)
	return actual != "" && actual == digest, err
}

// taken begins the names of files that are being taken.
const taken = ".taken-"

// take copies a file of a tree that a container writes to under its name in the mirror, if it has
// the digest that is wanted ("": any), and returns that. It is a copy, because whoever has opened the
// file there can change it later; and it is written to disk before it has its name, so that no half
// one is ever found there. The digest is "" if there is no such file.
func (m *Mirror) take(from *tree.Root, name, to, want string) (digest string, bytes int64, err error) {
	f, err := from.OpenFile(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, tree.ErrNotRegular) || errors.Is(err, unix.ENOTDIR) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	fresh, err := os.CreateTemp(m.Dir, taken+"*")
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
