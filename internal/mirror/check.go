package mirror

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// digestOf gives the SHA-256 of a file; "" if it is not there.
func digestOf(path string) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
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
	is, err := digestOf(path)
	return is != "" && is == digest, err
}

// move puts a file that is whole under its name: written to disk before, so that no half one is ever found there.
func move(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	err = f.Sync()
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.Chmod(from, 0o644); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// duplicate copies a file; the kernel shares the blocks if the file system can.
func duplicate(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
