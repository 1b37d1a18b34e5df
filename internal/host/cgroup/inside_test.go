package cgroup

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/test/need"
)

// groupWithProcess starts a process in a new group, in each hierarchy that can freeze: version 1
// and version 2.
func groupWithProcess(t *testing.T, test func(t *testing.T, g Group, cmd *exec.Cmd)) {
	need.Integration(t)
	places := []mountPoint{hostMount}
	if unified := hostMount + "/unified"; isV2(string(unified)) {
		places = append(places, unified)
	}
	for i, at := range places {
		t.Run(string(at), func(t *testing.T) {
			g := Group{at, "orrery/it-cgroup/" + strconv.Itoa(10+i)}
			cmd := exec.Command("sleep", "600")
			must(t, host.OnLockedThread(func() error { return g.Start(cmd) }))
			t.Cleanup(func() {
				_ = g.ThawAll(context.Background())
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				Remove(g)
				RemoveEmpty("it-cgroup")
			})
			test(t, g, cmd)
		})
	}
}

// freezeIn creates nested groups below a group, as root of a node can. It moves a process into the
// last one and freezes the others.
func freezeIn(t *testing.T, g Group, pid int, names ...string) {
	t.Helper()
	top, err := os.OpenRoot(g.file("freezer", ""))
	must(t, err)
	chain := []*os.Root{top}
	for _, name := range names {
		above := chain[len(chain)-1]
		must(t, above.Mkdir(name, 0o755))
		below, err := above.OpenRoot(name)
		must(t, err)
		chain = append(chain, below)
	}
	must(t, chain[len(chain)-1].WriteFile("cgroup.procs", []byte(strconv.Itoa(pid)), 0))
	for _, root := range chain[1:] {
		if g.at.isV1("freezer") {
			must(t, root.WriteFile("freezer.state", []byte("FROZEN"), 0))
		} else {
			must(t, root.WriteFile("cgroup.freeze", []byte("1"), 0))
		}
	}
	for _, root := range chain {
		must(t, root.Close())
	}
}

// TestKillFrozenInside checks that Kill ends a process in a group that a node's root created and
// froze, with a frozen parent. With version 1, SIGKILL alone does not end such a process.
func TestKillFrozenInside(t *testing.T) {
	groupWithProcess(t, func(t *testing.T, g Group, cmd *exec.Cmd) {
		freezeIn(t, g, cmd.Process.Pid, "a", "b")
		killed(t, g, cmd)
	})
}

// TestKillDeepInside checks groups nested deeper than the maximum length of a path. Their processes
// are found, and the groups are removed.
func TestKillDeepInside(t *testing.T) {
	groupWithProcess(t, func(t *testing.T, g Group, cmd *exec.Cmd) {
		var names []string
		for i := range 40 {
			names = append(names, strconv.Itoa(i)+strings.Repeat("x", 200))
		}
		freezeIn(t, g, cmd.Process.Pid, names...)
		killed(t, g, cmd)
		Remove(g)
		if _, err := os.Stat(g.file("freezer", "")); !os.IsNotExist(err) {
			t.Errorf("the group was not removed: %v", err)
		}
	})
}

func killed(t *testing.T, g Group, cmd *exec.Cmd) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	must(t, g.Kill(ctx))
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Fatal("the process goes on")
	}
	if left := g.Processes(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// TestKillIsBounded checks that Kill reports processes that do not end, even if its context has no
// deadline.
func TestKillIsBounded(t *testing.T) {
	defer func(d time.Duration) { killTimeout = d }(killTimeout)
	killTimeout = 50 * time.Millisecond
	at := mountPoint(t.TempDir())
	g := Group{at, "orrery/karoo/101"}
	const pid = 1 << 30 // no process has this id, but the group lists it in this test
	put(t, at, map[string]string{"cgroup.controllers": "", g.name + "/cgroup.procs": strconv.Itoa(pid) + "\n",
		g.name + "/cgroup.freeze": "0"})
	err := g.Kill(t.Context())
	if err == nil || !strings.Contains(err.Error(), strconv.Itoa(pid)) {
		t.Errorf("it returned %v", err)
	}
}

// TestThawAll checks that every group of both versions is thawed, and that no other file is
// written.
func TestThawAll(t *testing.T) {
	at := mountPoint(t.TempDir())
	g := Group{at, "orrery/karoo/101"}
	in, beside := "freezer/"+g.name, "unified/"+g.name
	put(t, at, map[string]string{
		"freezer/cgroup.procs": "", in + "/freezer.self_freezing": "0\n", in + "/freezer.state": "THAWED\n",
		in + "/a/freezer.self_freezing": "0\n", in + "/a/freezer.state": "FROZEN\n",
		in + "/a/b/freezer.self_freezing": "1\n", in + "/a/b/freezer.state": "FROZEN\n",
		"unified/cgroup.procs": "", "unified/cgroup.controllers": "\n", beside + "/cgroup.freeze": "0\n",
		beside + "/a/b/cgroup.freeze": "1\n", "freezer/orrery/karoo/102/freezer.self_freezing": "1\n",
		"freezer/orrery/karoo/102/freezer.state": "FROZEN\n",
	})
	must(t, os.Symlink("102", filepath.Join(string(at), "freezer/orrery/karoo/101/link")))
	must(t, g.ThawAll(t.Context()))
	for file, want := range map[string]string{
		in + "/freezer.state": "THAWED", in + "/a/freezer.state": "FROZEN", in + "/a/b/freezer.state": "THAWED",
		beside + "/a/b/cgroup.freeze": "0", "freezer/orrery/karoo/102/freezer.state": "FROZEN",
	} {
		if got := read(t, at, file); got != want {
			t.Errorf("%s is %q, not %q", file, got, want)
		}
	}
	must(t, Group{at, "orrery/karoo/103"}.ThawAll(t.Context())) // does not exist
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.ThawAll(ctx); err == nil {
		t.Error("it does not end with its context")
	}
}
