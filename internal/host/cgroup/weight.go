package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"orrery/internal/tree/rawfile"
)

// top is the group in which the groups of sites are.
const top = "orrery"

// A unit is the default weight of a group, and the largest that the kernel has (cgroups(7)).
type unit struct {
	file     string
	one, max int
}

var (
	sharesV1 = unit{"cpu.shares", 1024, 1 << 18}
	weightV2 = unit{"cpu.weight", 100, 10_000}
)

// Weigh sets the weight of a site's group, and of that of all sites, to that of as many groups as
// nodes are in them. So a node has the share of a busy host that a container of its own at the top
// would have, however many nodes and sites there are: the kernel's default is one weight for all of
// them together. Without the controller, or the right to set it, nothing changes.
//
// Nodes may start and stop at the same time, in other processes. Each looks again when it has
// written, so the last one to write has seen all of them.
func Weigh(site string) { mounted.weigh(site) }

// weighed brings the weights up to date after the group of a node was made or removed.
func (g Group) weighed() {
	above, id := filepath.Split(g.name)
	site, ok := strings.CutPrefix(filepath.Clean(above), top+"/")
	if _, err := strconv.Atoi(id); ok && err == nil {
		g.at.weigh(site)
	}
}

func (p place) weigh(site string) {
	u := weightV2
	if p.isV1("cpu") {
		u = sharesV1
	}
	above := filepath.Join(p.hierarchy("cpu"), top)
	u.follow(filepath.Join(above, site), nodesIn)
	u.follow(above, func(dir string, most int) int {
		n := 0
		visit(dir, func(name string) bool {
			n += nodesIn(filepath.Join(dir, name), most-n)
			return n < most
		})
		return n
	})
}

// follow writes the weight of as many nodes as count finds in a group, until it is the weight of all.
func (u unit) follow(group string, count func(dir string, most int) int) {
	at := filepath.Join(group, u.file)
	for {
		n := count(group, u.max/u.one)
		text, err := rawfile.ReadFile(at)
		want := strconv.Itoa(max(n, 1) * u.one)
		if err != nil || strings.TrimSpace(string(text)) == want || os.WriteFile(at, []byte(want), 0) != nil {
			return
		}
	}
}

// nodesIn counts the groups of nodes in the group of a site, as far as most: others there have
// names that are no numbers.
func nodesIn(site string, most int) int {
	n := 0
	visit(site, func(name string) bool {
		if _, err := strconv.Atoi(name); err == nil {
			n++
		}
		return n < most
	})
	return n
}

// visit names the groups in a group, until see returns false.
func visit(group string, see func(name string) bool) {
	f, err := os.Open(group)
	if err != nil {
		return
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(100)
		for _, e := range entries {
			if e.IsDir() && !see(e.Name()) {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
