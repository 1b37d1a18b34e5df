// Package cgroup keeps all processes of a node on this host in one control group, of the same name
// in every hierarchy: orrery/SITE/ID, beside the groups of systemd and not below them. A host may
// have some controllers in version 1 and others in version 2 (cgroups(7)).
//
// Limits and Limit are what such a group bounds, SetFrozen lets what is in it stand still, and
// Processes says who that is. Start starts a command in it. LXC makes the groups of its containers
// itself, and at the same place.
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

	"golang.org/x/sys/unix"
)

// A Group is a control group, which need not be there.
type Group struct {
	at   place
	name string
}

// Of returns the control group of a node.
func Of(site string, id int) Group { return Group{mounted, fmt.Sprintf(top+"/%s/%d", site, id)} }

// InSite returns the group of something beside the nodes of a site. It weighs as much as each of them.
func InSite(site, name string) Group { return Group{mounted, top + "/" + site + "/" + name} }

// Inner returns the group in which commands of this one begin, so that they are as deep as those
// that are run in a node from outside: with version 2 that is a group inside the node's (Doors).
func (g Group) Inner() Group {
	if isV2(string(g.at)) {
		g.name += "/" + leafName
	}
	return g
}

// Named returns a control group by the name that it has in each hierarchy.
func Named(name string) Group { return Group{mounted, name} }

// Name returns the name that it has in each hierarchy.
func (g Group) Name() string { return g.name }

// Beside returns another group of the node.
func (g Group) Beside(suffix string) Group { return Group{g.at, g.name + suffix} }

// file is a file of the group, of a controller.
func (g Group) file(controller, name string) string {
	return filepath.Join(g.at.hierarchy(controller), g.name, name)
}

// A place is where hierarchies are mounted: those of this host, or what a test makes up.
type place string

const mounted place = "/sys/fs/cgroup"

// isV1 reports whether a controller has a hierarchy of version 1.
func (p place) isV1(controller string) bool {
	_, err := os.Stat(filepath.Join(string(p), controller, "cgroup.procs"))
	return err == nil
}

// hierarchy is where a controller's control groups are.
func (p place) hierarchy(controller string) string {
	if p.isV1(controller) {
		return filepath.Join(string(p), controller)
	}
	return string(p)
}

// Processes returns the ids of all processes in the group and in those inside it. This one is not
// among them: with version 1, the thread that has started something in there is still there until
// it has ended.
func (g Group) Processes() []int {
	all, _ := g.processes(context.Background()) // a control group may go at any moment
	return slices.DeleteFunc(all, func(pid int) bool { return pid == os.Getpid() })
}

func (g Group) processes(ctx context.Context) (all []int, err error) {
	// Nobody in a node has a reason to leave that of the freezer.
	err = branch{g.at.hierarchy("freezer"), g.name}.walk(ctx, func(above int, name string) error {
		text, err := readIn(above, name, "cgroup.procs")
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil && pid > 0 {
				all = append(all, pid)
			}
		}
		if errors.Is(err, unix.EOPNOTSUPP) { // a threaded group of version 2: the one above it lists its processes
			return nil
		}
		return err
	})
	return all, err
}
