package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"orrery/test/need"
)

// TestWeight checks that a site weighs as much as its nodes, and all sites as much as all nodes,
// with both versions and up to the kernel's largest weight. Groups that are not nodes do not count.
func TestWeight(t *testing.T) {
	for _, v := range []struct {
		name     string
		mount    map[string]string
		root     string
		file     string
		one, max int
	}{
		{"v1", map[string]string{"cpu/cgroup.procs": ""}, "cpu/", "cpu.shares", 1024, 262144},
		{"v2", map[string]string{"cgroup.controllers": "cpu\n", "cgroup.procs": ""}, "", "cpu.weight", 100, 10000},
	} {
		t.Run(v.name, func(t *testing.T) {
			at := mountPoint(t.TempDir())
			put(t, at, v.mount)
			file := func(group string) string { return v.root + group + "/" + v.file }
			nodes := func(site string, from, to int) {
				for id := from; id < to; id++ {
					put(t, at, map[string]string{file(fmt.Sprintf("orrery/%s/%d", site, id)): "0"})
				}
			}
			nodes("karoo", 10, 13)
			nodes("meer", 5, 6)
			put(t, at, map[string]string{
				file("orrery"): "0\n", file("orrery/karoo"): "0\n", file("orrery/meer"): "0\n",
				file("orrery/karoo/10.monitor"): "0", file("orrery/karoo/bare-0"): "0",
			})
			weighs := func(group string, want int) {
				t.Helper()
				if got := read(t, at, file(group)); got != fmt.Sprint(want) {
					t.Errorf("%s weighs %s, want %d", group, got, want)
				}
			}
			at.updateWeights("karoo")
			weighs("orrery/karoo", 3*v.one)
			weighs("orrery/meer", 0)
			weighs("orrery", 4*v.one)
			weighs("orrery/karoo/10", 0)
			at.updateWeights("gone")
			nodes("meer", 100, 500)
			at.updateWeights("meer")
			weighs("orrery/meer", v.max)
			weighs("orrery", v.max)
		})
	}
}

// TestWeightFollows checks that the real weights follow the creation and removal of groups.
func TestWeightFollows(t *testing.T) {
	need.Integration(t)
	const site = "it-weight"
	var all []Group
	t.Cleanup(func() { Remove(all...); RemoveEmpty(site) })
	u := weightV2
	if hostMount.isV1("cpu") {
		u = sharesV1
	}
	follows := func(n int) {
		t.Helper()
		if got := read(t, mountPoint(hostMount.hierarchy("cpu")), "orrery/"+site+"/"+u.file); got != fmt.Sprint(n*u.one) {
			t.Errorf("of %d nodes the site weighs %s", n, got)
		}
	}
	for id := 1; id <= 3; id++ {
		g := OfNode(site, id)
		all = append(all, g)
		must(t, g.Create())
		follows(id)
	}
	Remove(all[0])
	follows(2)
	beside := InSite(site, "beside").Inner()
	must(t, beside.Create())
	follows(2)
	RemoveEmpty(site)
	follows(2)
	Remove(all...)
	RemoveEmpty(site)
	if _, err := os.Stat(filepath.Dir(InSite(site, "beside").file("freezer", ""))); !os.IsNotExist(err) {
		t.Errorf("the groups of the site are left: %v", err)
	}
}
