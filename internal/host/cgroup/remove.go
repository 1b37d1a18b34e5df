package cgroup

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Remove removes groups that have no processes in them, with those inside, from every hierarchy.
func Remove(groups ...Group) {
	for _, g := range groups {
		for _, root := range g.at.all() {
			branch{root, g.name}.remove()
		}
		g.weighed()
	}
}

// RemoveEmpty removes the groups in which those of a site's nodes are, if it was the last, with
// those beside nodes that nothing runs in (InSite).
func RemoveEmpty(site string) {
	for _, root := range mounted.all() {
		removeBeside(root, site)
		for _, group := range []string{top + "/" + site, top} {
			_ = unix.Rmdir(filepath.Join(root, group)) // it has others in it, or is not there
		}
	}
}

// removeBeside removes the groups beside nodes from one hierarchy, unless nodes are left.
func removeBeside(root, site string) {
	var names []string
	visit(filepath.Join(root, top, site), func(name string) bool {
		names = append(names, name)
		return true
	})
	for _, name := range names {
		if name[0] >= '0' && name[0] <= '9' {
			return // of a node
		}
	}
	for _, name := range names {
		_ = branch{root, InSite(site, name).name}.walk(context.Background(), func(above int, name string) error {
			_ = unix.Unlinkat(above, name, unix.AT_REMOVEDIR) // something runs in it
			return nil
		})
	}
}

// all returns the hierarchies.
func (p place) all() []string {
	below, err := filepath.Glob(filepath.Join(string(p), "*"))
	if err != nil {
		return nil
	}
	return append(below, string(p))
}

// leaving is how long the last processes of a group may take to leave it once they have ended.
const leaving = time.Second

// remove removes the group and those inside it.
func (b branch) remove() {
	until := time.Now().Add(leaving)
	_ = b.walk(context.Background(), func(above int, name string) error {
		for {
			err := unix.Unlinkat(above, name, unix.AT_REMOVEDIR)
			if !errors.Is(err, unix.EBUSY) || time.Now().After(until) {
				return nil // what is left, the next call removes
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
}
