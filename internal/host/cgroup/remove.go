package cgroup

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Remove removes groups that contain no processes, and the groups below them, from every hierarchy.
func Remove(groups ...Group) {
	for _, g := range groups {
		for _, root := range g.at.hierarchies() {
			groupDir{root, g.name}.remove()
		}
		g.updateWeights()
	}
}

// RemoveEmpty removes the group of a site, and the group of all sites, if they are empty. If the
// site has no nodes left, it first removes the groups beside nodes in which nothing runs (InSite).
func RemoveEmpty(site string) {
	for _, root := range hostMount.hierarchies() {
		removeSiblings(root, site)
		for _, group := range []string{top + "/" + site, top} {
			_ = unix.Rmdir(filepath.Join(root, group)) // ignore errors: it contains other groups, or does not exist
		}
	}
}

// removeSiblings removes the groups beside nodes from one hierarchy, unless nodes are left.
func removeSiblings(root, site string) {
	var names []string
	eachSubgroup(filepath.Join(root, top, site), func(name string) bool {
		names = append(names, name)
		return true
	})
	for _, name := range names {
		if name[0] >= '0' && name[0] <= '9' {
			return // the group of a node
		}
	}
	for _, name := range names {
		_ = groupDir{root, InSite(site, name).name}.walk(context.Background(), func(above int, name string) error {
			_ = unix.Unlinkat(above, name, unix.AT_REMOVEDIR) // ignore the error: a process runs in it
			return nil
		})
	}
}

// hierarchies returns all directories that may be hierarchies.
func (p mountPoint) hierarchies() []string {
	below, err := filepath.Glob(filepath.Join(string(p), "*"))
	if err != nil {
		return nil
	}
	return append(below, string(p))
}

// emptyTimeout limits how long the last processes of a group may take to leave it after they have ended.
const emptyTimeout = time.Second

// remove removes the group and the groups below it.
func (b groupDir) remove() {
	until := time.Now().Add(emptyTimeout)
	_ = b.walk(context.Background(), func(above int, name string) error {
		for {
			err := unix.Unlinkat(above, name, unix.AT_REMOVEDIR)
			if !errors.Is(err, unix.EBUSY) || time.Now().After(until) {
				return nil // the next call removes what is left
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
}
