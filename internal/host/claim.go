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

// claims is the directory of claims: a link for each site on this machine, to the state directory
// that holds the site. There is one for the machine, whatever state directories exist. Bridges,
// links, tables and control groups are named after sites, and the kernel has one of each.
//
// A claim is valid while the state directory holds nodes of the site, or while a process holds the
// site's lock there. Otherwise it protects nothing, and Yield removes it.
//
// There is no gap for a second site of the same name. Claim and Yield both run under the lock of
// the site in their own state directory. While they read and change claims, they also hold the lock
// of all claims. A run calls Yield last, just before it releases the site's lock. By then, what it
// created is gone or is a node. Another state directory is refused until that moment. Within the
// same one, the site's lock excludes all others.
var claims = "/run/orrery/claims"

// Claim records that a site is kept in this state directory. It returns an error if another state
// directory holds nodes of the site, or if a process holds the site's lock there. The caller holds
// the site's lock.
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
	if err := d.checkOwner(key, where); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(d.State, path)
}

// Elsewhere returns the error with which Claim would fail, or nil. A command that only reads this
// state directory would otherwise find nothing of a site whose nodes run, and plan to create them.
func (d Dirs) Elsewhere(key string) error {
	if key == "" {
		return nil // all sites of this directory
	}
	where, err := os.Readlink(filepath.Join(claims, key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return d.checkOwner(key, where)
}

// OtherStateDir returns the other state directory in which a site is kept, or "".
func (d Dirs) OtherStateDir(key string) string {
	where, err := os.Readlink(filepath.Join(claims, key))
	if err != nil || d.checkOwner(key, where) == nil {
		return ""
	}
	return where
}

// checkOwner returns an error if the site is kept in the state directory where, and that is not d.
func (d Dirs) checkOwner(key, where string) error {
	if other := (Dirs{State: where}); where == "" || where == d.State || sameDir(where, d.State) || !other.isInUse(key) {
		return nil
	}
	return problem.New(problem.Unable, "site %s already exists on this machine, with its state in %s", key, where).At(d.State).
		Try("destroy it with ORRERY_STATE=%s orrery down, or rename one of the two", where)
}

// Yield releases the claim to a site that has no nodes left in this state directory. The caller
// holds the site's lock, and changes nothing more under it. If Yield fails, the claim stays, which
// does no harm.
func (d Dirs) Yield(ctx context.Context, key string) {
	ctx, cancel := cleanupContext(ctx)
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

// sweepClaims removes claims to sites whose state directory no longer exists. For example, a run
// was killed while it destroyed a twin, or a user removed a state directory.
func sweepClaims() {
	all, _ := os.ReadDir(claims)
	for _, c := range all {
		where, err := os.Readlink(filepath.Join(claims, c.Name()))
		if err != nil { // the lock file
			continue
		}
		if _, err := os.Lstat(Dirs{State: where}.Site(c.Name())); errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(filepath.Join(claims, c.Name()))
		}
	}
}

// isInUse reports whether this state directory holds nodes of a site, or a process holds the site's
// lock and may be about to create some.
func (d Dirs) isInUse(key string) bool {
	return d.hasNodes(key) || IsLocked(d.Lock(key))
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
