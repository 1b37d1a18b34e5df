package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"orrery/internal/problem"
)

// claims tells of each site on this machine in which state directory it is kept. It is one for the
// machine, whatever state directories there are: bridges, links, tables and control groups are
// named by sites, and the kernel has one of each.
//
// A claim holds as long as nodes of the site are in that directory, or somebody holds the site's
// lock there; beyond that it protects nothing, and Yield removes it. That leaves no gap for a
// second site of the same name: who claims and who yields both hold the lock of the site in their
// own state directory, and the lock of all claims while they look and change. Whoever yields does
// so last, before it gives the site's lock back, so what it made is gone or is a node by then;
// another state directory is refused until that moment, and within the same one the site's lock
// keeps all others out.
var claims = "/run/orrery/claims"

// Claim notes that a site is kept in this state directory. It is refused if nodes of it are in
// another one, or somebody is at work on it there. The caller holds the site's lock.
func (d Dirs) Claim(ctx context.Context, key string) error {
	unlock, err := lockClaims(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	sweepClaims()
	path := filepath.Join(claims, key)
	where, err := os.Readlink(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if where == d.State {
		return nil
	}
	if err := d.other(key, where); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(d.State, path)
}

// Elsewhere is the error with which Claim would be refused. Without it, a look into this state
// directory finds nothing of a site whose nodes run, and plans to make them.
func (d Dirs) Elsewhere(key string) error {
	if key == "" {
		return nil // all sites of this directory are meant
	}
	where, err := os.Readlink(filepath.Join(claims, key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return d.other(key, where)
}

// KeptElsewhere returns the other state directory in which a site is kept, or "".
func (d Dirs) KeptElsewhere(key string) string {
	where, err := os.Readlink(filepath.Join(claims, key))
	if err != nil || d.other(key, where) == nil {
		return ""
	}
	return where
}

// other refuses a site that is kept in another state directory.
func (d Dirs) other(key, where string) error {
	if other := (Dirs{State: where}); where == "" || where == d.State || sameDir(where, d.State) || !other.keeps(key) {
		return nil
	}
	return problem.New(problem.Unable, "site %s is on this machine already, kept in %s", key, where).At(d.State).
		Try("ORRERY_STATE=%s orrery down; or give one of them another name", where)
}

// Yield releases the claim to a site that has no node left in this state directory. The caller holds the
// site's lock, and does nothing more under it. A claim that stays because something is in the way does no
// harm.
func (d Dirs) Yield(ctx context.Context, key string) {
	ctx, cancel := afterwards(ctx)
	defer cancel()
	unlock, err := lockClaims(ctx)
	if err != nil {
		return
	}
	defer unlock()
	path := filepath.Join(claims, key)
	if where, err := os.Readlink(path); err == nil && sameDir(where, d.State) && !d.hasNodes(key) {
		_ = os.Remove(path)
	}
}

func lockClaims(ctx context.Context) (unlock func(), err error) {
	return lockFile(ctx, filepath.Join(claims, ".lock"), "the lock of this machine's sites")
}

// sweepClaims removes claims of which nothing is kept any more: a twin that was killed while it was
// destroyed, or a state directory that was removed.
func sweepClaims() {
	all, _ := os.ReadDir(claims)
	for _, c := range all {
		where, err := os.Readlink(filepath.Join(claims, c.Name()))
		if err != nil { // the lock
			continue
		}
		if _, err := os.Lstat(Dirs{State: where}.Site(c.Name())); errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(filepath.Join(claims, c.Name()))
		}
	}
}

// keeps reports whether nodes of a site are in this state directory, or somebody is about to make some.
func (d Dirs) keeps(key string) bool {
	return d.hasNodes(key) || Held(d.Lock(key))
}

func (d Dirs) hasNodes(key string) bool {
	nodes, err := os.ReadDir(d.Nodes(key))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return slices.ContainsFunc(nodes, func(n fs.DirEntry) bool { return !strings.HasPrefix(n.Name(), ".") })
}

func sameDir(a, b string) bool {
	one, err := os.Stat(a)
	two, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(one, two)
}
