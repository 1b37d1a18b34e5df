package cgroup

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/test/need"
)

// put writes the files of a fake hierarchy. Unlike the kernel, it does not create the files of a
// group by default.
func put(t *testing.T, at mountPoint, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(string(at), name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, at mountPoint, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(string(at), name))
	must(t, err)
	return strings.TrimSpace(string(text))
}

// TestMakeUnified checks that with version 2 only, parents of the node's group delegate
// controllers. The node's group itself does not, because it contains processes.
func TestMakeUnified(t *testing.T) {
	at := mountPoint(t.TempDir())
	put(t, at, map[string]string{"cgroup.controllers": "cpuset cpu io memory hugetlb pids rdma misc\n",
		"cgroup.procs": "", "system.slice/cgroup.procs": ""})
	g := Group{at, "orrery/karoo/10"}
	must(t, g.Create())
	must(t, g.Create())
	for _, above := range []string{"", "orrery", "orrery/karoo"} {
		if got := read(t, at, above+"/cgroup.subtree_control"); got != "+cpuset +cpu +io +memory +pids" {
			t.Errorf("%q passes %q on", above, got)
		}
	}
	if inside, err := os.ReadDir(filepath.Join(string(at), g.name)); err != nil || len(inside) > 0 {
		t.Errorf("in the node's: %v, %v", inside, err)
	}
	if v1, v2 := at.hierarchiesByVersion(); len(v1) > 0 || v2 != string(at) {
		t.Errorf("%v and %q", v1, v2)
	}
}

// TestMakeBeside checks that with both versions side by side, the group is in each hierarchy, and
// has processors where they are required.
func TestMakeBeside(t *testing.T) {
	at := mountPoint(t.TempDir())
	put(t, at, map[string]string{
		"cpu,cpuacct/cgroup.procs": "", "freezer/cgroup.procs": "", "systemd/cgroup.procs": "", "other/file": "",
		"unified/cgroup.procs": "", "unified/cgroup.controllers": "\n",
		"cpuset/cgroup.procs": "", "cpuset/cpuset.cpus": "0-3\n", "cpuset/cpuset.mems": "0\n",
		"cpuset/orrery/cpuset.cpus": "\n", "cpuset/orrery/cpuset.mems": "\n",
		"cpuset/orrery/karoo/cpuset.cpus": "1\n", "cpuset/orrery/karoo/cpuset.mems": "\n",
		"cpuset/orrery/karoo/10/cpuset.cpus": "\n", "cpuset/orrery/karoo/10/cpuset.mems": "\n",
	})
	must(t, os.Symlink("cpu,cpuacct", filepath.Join(string(at), "cpu")))
	g := Group{at, "orrery/karoo/10"}
	must(t, g.Create())
	for _, h := range []string{"cpu,cpuacct", "freezer", "systemd", "unified", "cpuset"} {
		if info, err := os.Stat(filepath.Join(string(at), h, g.name)); err != nil || !info.IsDir() {
			t.Errorf("not in %s: %v", h, err)
		}
	}
	for file, want := range map[string]string{
		"orrery/cpuset.cpus": "0-3", "orrery/karoo/cpuset.cpus": "1", "orrery/karoo/10/cpuset.cpus": "1",
		"orrery/karoo/10/cpuset.mems":  "0",
		"orrery/cgroup.clone_children": "1",
	} {
		if got := read(t, at, "cpuset/"+file); got != want {
			t.Errorf("%s is %q", file, got)
		}
	}
	v1, v2 := at.hierarchiesByVersion()
	if filepath.Base(v2) != "unified" || len(v1) != 4 || slices.Contains(v1, string(at)+"/cpu") {
		t.Errorf("%v and %q", v1, v2)
	}
}

// TestStart checks that a command is in its group in all hierarchies from the start. It also checks
// that the group can be frozen, and killed whether frozen or not.
func TestStart(t *testing.T) {
	need.Integration(t)
	places := []mountPoint{hostMount}
	if beside := hostMount + "/unified"; isV2(string(beside)) {
		places = append(places, beside) // like a host with version 2 only
	}
	for _, at := range places {
		t.Run(string(at), func(t *testing.T) {
			g := Group{at, "orrery/it-cgroup/1"}
			t.Cleanup(func() {
				_ = g.Kill(context.Background())
				Remove(g)
				RemoveEmpty("it-cgroup")
			})
			cmd := exec.Command("sh", "-c", "cat /proc/self/cgroup; sleep 60 & wait")
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, host.OnLockedThread(func() error { return g.Start(cmd) }))
			lines := bufio.NewScanner(out)
			v1, v2 := at.hierarchiesByVersion()
			for range len(v1) + min(len(v2), 1) {
				if lines.Scan(); !strings.HasSuffix(lines.Text(), ":/"+g.name) &&
					(len(v1) > 0 || strings.HasPrefix(lines.Text(), "0:")) {
					t.Errorf("it began in %s", lines.Text())
				}
			}
			if mine, err := os.ReadFile("/proc/self/cgroup"); err != nil || strings.Contains(string(mine), "it-cgroup") {
				t.Errorf("we are in %s: %v", mine, err)
			}
			if in := g.Processes(); !slices.Contains(in, cmd.Process.Pid) || slices.Contains(in, os.Getpid()) {
				// A thread of this process may be in the group.
				t.Errorf("in it are %v", in)
			}
			must(t, g.SetFrozen(true))
			must(t, g.WaitFrozen(t.Context(), true))
			if !g.Frozen() {
				t.Error("it does not stand still")
			}
			must(t, g.SetFrozen(false))
			must(t, g.WaitFrozen(t.Context(), false))
			must(t, g.SetFrozen(true))
			ended := make(chan error)
			go func() { ended <- cmd.Wait() }()
			must(t, g.Kill(t.Context()))
			<-ended
			if left := g.Processes(); len(left) > 0 {
				t.Errorf("left are %v", left)
			}
		})
	}
}

// TestLimit checks that limits of a new group are in force, and are removed again.
func TestLimit(t *testing.T) {
	need.Integration(t)
	g := OfNode("it-cgroup", 2)
	t.Cleanup(func() { Remove(g); RemoveEmpty("it-cgroup") })
	must(t, g.Create())
	for _, limits := range []site.Limits{{Cpus: 0.5, Memory: 64 << 20, Pids: 20, Pin: "0"}, {Memory: 128 << 20}, {}} {
		must(t, g.SetLimits("a", limits))
		if held, ok := g.InForce(limits); !ok {
			t.Errorf("limits are %+v instead of %+v", held, limits)
		}
	}
}
