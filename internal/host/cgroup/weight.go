package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"orrery/internal/tree/rawfile"
)

// top is the parent of the groups of sites.
const top = "orrery"

// A weightFile is a weight file of the kernel with its default and its largest value (cgroups(7)).
type weightFile struct {
	file     string
	one, max int
}

var (
	sharesV1 = weightFile{"cpu.shares", 1024, 1 << 18}
	weightV2 = weightFile{"cpu.weight", 100, 10_000}
)

// UpdateWeights sets the weight of a site's group, and that of the group of all sites, to the sum for the
// nodes in them. So a node gets the share of a busy host that a container at the top level would
// get, however many nodes and sites there are. By default, the kernel gives all of them together
// the weight of one group. Without the controller, or the right to set it, Weigh changes nothing.
//
// Nodes may start and stop concurrently, in other processes. Each process counts again after it has
// written, so the last one to write has seen all nodes.
func UpdateWeights(site string) { hostMount.updateWeights(site) }

// updateWeights updates the weights after the group of a node was created or removed.
func (g Group) updateWeights() {
	above, id := filepath.Split(g.name)
	site, ok := strings.CutPrefix(filepath.Clean(above), top+"/")
	if _, err := strconv.Atoi(id); ok && err == nil {
		g.at.updateWeights(site)
	}
}

func (p mountPoint) updateWeights(site string) {
	u := weightV2
	if p.isV1("cpu") {
		u = sharesV1
	}
	above := filepath.Join(p.hierarchy("cpu"), top)
	u.update(filepath.Join(above, site), nodesIn)
	u.update(above, func(dir string, most int) int {
		n := 0
		eachSubgroup(dir, func(name string) bool {
			n += nodesIn(filepath.Join(dir, name), most-n)
			return n < most
		})
		return n
	})
}

// update writes the weight for the number of nodes that count finds in a group, until it is up to
// date.
func (u weightFile) update(group string, count func(dir string, most int) int) {
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

// nodesIn counts the groups of nodes in the group of a site, up to most. The names of other groups
// are not numbers.
func nodesIn(site string, most int) int {
	n := 0
	eachSubgroup(site, func(name string) bool {
		if _, err := strconv.Atoi(name); err == nil {
			n++
		}
		return n < most
	})
	return n
}

// eachSubgroup calls see with the name of each group in a group, until see returns false.
func eachSubgroup(group string, see func(name string) bool) {
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
