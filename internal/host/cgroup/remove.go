package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Remove removes groups that have no processes in them, with those inside, from every hierarchy.
func Remove(groups ...Group) {
	for _, g := range groups {
		for _, root := range g.at.all() {
			removeTree(filepath.Join(root, g.name))
		}
	}
}

// RemoveEmpty removes the groups in which those of a site's nodes are, if it was the last.
func RemoveEmpty(site string) {
	for _, root := range mounted.all() {
		for _, group := range []string{"orrery/" + site, "orrery"} {
			_ = unix.Rmdir(filepath.Join(root, group)) // it has others in it, or is not there
		}
	}
}

// all gives the hierarchies.
func (p place) all() []string {
	below, err := filepath.Glob(filepath.Join(string(p), "*"))
	if err != nil {
		return nil
	}
	return append(below, string(p))
}

// removeTree removes a control group and those inside. The last process may
// still be leaving, so it tries for a while.
func removeTree(group string) {
	inside, err := os.ReadDir(group)
	if err != nil {
		return
	}
	for _, entry := range inside {
		if entry.IsDir() {
			removeTree(filepath.Join(group, entry.Name()))
		}
	}
	for range 20 {
		if err := unix.Rmdir(group); !errors.Is(err, unix.EBUSY) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}
