// Package staging prepares directories before they are renamed into place.
//
// Each staging directory is locked while a process works in it. So a directory without a lock was
// left by a process that was killed, and the next Create in the same place removes it.
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

// A Dir is a staging directory.
type Dir struct {
	Path string
	lock *os.File
}

const prefix = ".orrery-"

// Create creates a staging directory in a directory, and removes abandoned ones there.
func Create(in string) (*Dir, error) {
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

// Remove removes the staging directory with its content. The next Create removes what Remove could
// not.
func (d *Dir) Remove() {
	_ = tree.RemoveAll(d.Path)
	d.lock.Close()
}

// sweep removes abandoned directories of the caller. They must be older than a minute, because
// another process may just have created one and not locked it yet.
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

// lock locks a directory. It returns an error if another process has locked it.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := host.Flock(f, host.Exclusive); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
