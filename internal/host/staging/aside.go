// Package staging prepares directories before they are renamed into place. Each is locked for as long
// as somebody is at work in it, so that one without a lock was left by a program that was killed:
// whoever makes the next one in the same place removes it.
package staging

import (
	"crypto/rand"
	"os"
	"path"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/tree"
)

// A Dir is one of them.
type Dir struct {
	Path string
	lock *os.File
}

const prefix = ".orrery-"

// New makes one in a directory, and removes those there that were left.
func New(in string) (*Dir, error) {
	sweep(in)
	dir := path.Join(in, prefix+rand.Text()[:12])
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := lock(dir)
	if err != nil {
		return nil, err
	}
	return &Dir{dir, f}, nil
}

// Remove removes it, with whatever is still in it. What of that fails, the next one removes.
func (d *Dir) Remove() {
	_ = tree.RemoveAll(d.Path)
	d.lock.Close()
}

// sweep removes what was left, if it is the caller's and old enough that nobody is just about to lock it.
func sweep(in string) {
	entries, _ := os.ReadDir(in)
	for _, e := range entries {
		if ours, _ := filepath.Match(prefix+"????????????", e.Name()); !ours {
			continue
		}
		dir := path.Join(in, e.Name())
		f, err := lock(dir)
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Fstat(int(f.Fd()), &st) == nil && int(st.Uid) == os.Geteuid() &&
			time.Since(time.Unix(st.Mtim.Unix())) > time.Minute {
			_ = tree.RemoveAll(dir)
		}
		f.Close()
	}
}

// lock locks a directory, unless somebody else has locked it.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := host.Flock(f, host.Alone); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
