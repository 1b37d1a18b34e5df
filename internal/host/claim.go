package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// claims tells of each site that is or was on this machine in which state directory it is kept. It is one for the machine, whatever state directories
// there are: bridges, links, tables and control groups are named by sites, and the kernel has one of each.
var claims = "/run/orrery/claims"

// Claim notes that a site is kept in this state directory. It is refused if nodes of it are in another one, or somebody is at work on it there. The
// caller holds the site's lock.
func (d Dirs) Claim(key string) error {
	if err := os.MkdirAll(claims, 0o700); err != nil {
		return err
	}
	unlock, err := lockFile(filepath.Join(claims, ".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	path := filepath.Join(claims, key)
	where, err := os.Readlink(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if where == d.State {
		return nil
	}
	if other := (Dirs{State: where}); where != "" && !sameDir(where, d.State) && other.keeps(key) {
		return problem.New(problem.Unable, "site %s is on this machine already, kept in %s", key, where).At(d.State).
			Try("ORRERY_STATE=%s orrery down; or give one of them another name", where)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(d.State, path)
}

// keeps reports whether nodes of a site are in this state directory, or somebody is about to make some.
func (d Dirs) keeps(key string) bool {
	nodes, _ := os.ReadDir(d.Nodes(key))
	for _, n := range nodes {
		if !strings.HasPrefix(n.Name(), ".") {
			return true
		}
	}
	f, err := os.Open(d.Lock(key))
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
}

func sameDir(a, b string) bool {
	one, err := os.Stat(a)
	two, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(one, two)
}
