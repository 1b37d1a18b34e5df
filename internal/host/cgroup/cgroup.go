// Package cgroup keeps all processes of a node on this host in one control group.
//
// The group has the same name in every hierarchy: orrery/SITE/ID, beside the groups of systemd and
// not below them. A host may have some controllers in version 1 and others in version 2
// (cgroups(7)).
//
// Limits and Limit read and set the limits of a group, SetFrozen freezes or thaws its processes,
// and Processes lists them. Start starts a command in a group. LXC creates the groups of its
// containers itself, at the same place.
package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// A Group is a control group, which need not exist.
type Group struct {
	at   mountPoint
	name string
}

// OfNode returns the control group of a node.
func OfNode(site string, id int) Group { return Group{hostMount, fmt.Sprintf(top+"/%s/%d", site, id)} }

// InSite returns a group beside the nodes of a site. It has the same weight as a node.
func InSite(site, name string) Group { return Group{hostMount, top + "/" + site + "/" + name} }

// Inner returns the group in which commands of this group begin. They are then as deep as commands
// that are run in a node from outside. With version 2, that is a group inside the node's group
// (Doors).
func (g Group) Inner() Group {
	if isV2(string(g.at)) {
		g.name += "/" + leafName
	}
	return g
}

// Named returns a control group by its name, which is the same in each hierarchy.
func Named(name string) Group { return Group{hostMount, name} }

// Name returns the group's name, which is the same in each hierarchy.
func (g Group) Name() string { return g.name }

// Sibling returns another group of the same node.
func (g Group) Sibling(suffix string) Group { return Group{g.at, g.name + suffix} }

// file returns the path of a file of the group in a controller's hierarchy.
func (g Group) file(controller, name string) string {
	return filepath.Join(g.at.hierarchy(controller), g.name, name)
}

// A mountPoint is where hierarchies are mounted: those of this host, or a test's directory.
type mountPoint string

const hostMount mountPoint = "/sys/fs/cgroup"

// hostV1 holds by the controller what hasV1 has found on this host. Hierarchies are mounted at boot.
var hostV1 sync.Map

// isV1 reports whether a controller has a hierarchy of version 1.
func (p mountPoint) isV1(controller string) bool {
	if p != hostMount { // a test may change its tree
		return p.hasV1(controller)
	}
	known, ok := hostV1.Load(controller)
	if !ok {
		known, _ = hostV1.LoadOrStore(controller, p.hasV1(controller))
	}
	return known.(bool)
}

// hasV1 looks for the controller's hierarchy of version 1.
func (p mountPoint) hasV1(controller string) bool {
	_, err := os.Stat(filepath.Join(string(p), controller, "cgroup.procs"))
	return err == nil
}

// hierarchy returns the directory of a controller's control groups.
func (p mountPoint) hierarchy(controller string) string {
	if p.isV1(controller) {
		return filepath.Join(string(p), controller)
	}
	return string(p)
}

// Processes returns the ids of all processes in the group and in the groups below it, except this
// one. With version 1, the thread that has started a process in the group stays there until it has
// ended.
func (g Group) Processes() []int {
	all, _ := g.processes(context.Background()) // a control group may disappear at any moment
	return slices.DeleteFunc(all, func(pid int) bool { return pid == os.Getpid() })
}

func (g Group) processes(ctx context.Context) (all []int, err error) {
	// Processes in a node have no reason to leave the freezer's group.
	err = groupDir{g.at.hierarchy("freezer"), g.name}.walk(ctx, func(above int, name string) error {
		text, err := readIn(above, name, "cgroup.procs")
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil && pid > 0 {
				all = append(all, pid)
			}
		}
		if errors.Is(err, unix.EOPNOTSUPP) { // a threaded group of version 2: its parent lists its processes
			return nil
		}
		return err
	})
	return all, err
}
