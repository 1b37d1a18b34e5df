package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLimits: limits are in force, according to the kernel and as seen in a node, and change while
// a node runs.
func TestLimits(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-limits", `
[network.lan]
subnet = "10.99.8.0/24"
[image.debian]
suite = "bookworm"
[node.bound]
id = 10
cpus = 0.5
pin = "0"
memory = "96MiB"
swap = "0"
pids = 64
[node.free]
id = 11
`, nil)
	s.do("up")
	s.wantLimits("bound", 10, map[string][2]string{
		"cpu": {"cpu.cfs_quota_us=50000", "cpu.max=50000 100000"}, "cpuset": {"cpuset.cpus=0", "cpuset.cpus=0"},
		"memory": {"memory.limit_in_bytes=100663296", "memory.max=100663296"}, "pids": {"pids.max=64", "pids.max=64"},
	})
	if got := s.sh("bound", "grep Cpus_allowed_list /proc/self/status | cut -f2"); got != "0" {
		t.Errorf("bound runs on processors %s", got)
	}
	if got := s.sh("free", "grep Cpus_allowed_list /proc/self/status | cut -f2"); got == "0" {
		t.Error("free is pinned")
	}

	// Limits change without disturbing the node.
	before := s.init("bound")
	s.edit("site.toml", "cpus = 0.5", "cpus = 1.5")
	s.edit("site.toml", `memory = "96MiB"`, `memory = "160MiB"`)
	s.edit("site.toml", `pin = "0"`, "")
	s.edit("site.toml", "pids = 64", "pids = 80")
	s.wantPlan("limit bound")
	s.run("plan").want(10, "cpus changed, memory changed, pids changed, and 1 more")
	s.do("up")
	if after := s.init("bound"); after != before {
		t.Errorf("init of bound was %s and is %s", before, after)
	}
	s.wantLimits("bound", 10, map[string][2]string{
		"cpu":    {"cpu.cfs_quota_us=150000", "cpu.max=150000 100000"},
		"memory": {"memory.limit_in_bytes=167772160", "memory.max=167772160"},
		"pids":   {"pids.max=80", "pids.max=80"},
	})
	s.settled()

	// A limit that was changed by hand is a difference, too.
	if err := os.WriteFile(s.limitFile(10, "pids", "pids.max"), []byte("70"), 0); err != nil {
		t.Fatal(err)
	}
	s.wantPlan("limit bound")
	s.do("up")
	s.settled()

	// A process beyond a limit is killed, and the node keeps running. The shell itself needs no new
	// process once the commands are started.
	out := s.sh("bound", `(i=0; while [ $i -lt 200 ]; do sleep 2 >/dev/null 2>&1 & i=$((i+1)); done) 2>&1; true`)
	if !strings.Contains(out, "ork") {
		// "Cannot fork", "fork: retry"
		t.Errorf("200 processes could be started: %s", out)
	}
	for n := 0; s.run("shell", "bound", "--", "sh", "-c", "sleep 0 | sleep 0").status != 0; n++ { // until they have ended
		if time.Sleep(200 * time.Millisecond); n == 150 {
			t.Fatal("there is no room for processes any more")
		}
	}
	r := s.run("shell", "bound", "--", "python3", "-c", "x = bytearray(400 << 20)")
	if r.status == 0 {
		t.Error("400 MiB could be had")
	}
	s.run("exec", "all", "--", "systemctl", "is-system-running", "--wait").want(0)
	if out := s.sh("free", "i=0; while [ $i -lt 200 ]; do sleep 1 & i=$((i+1)); done; echo all"); out != "all" {
		t.Errorf("free is bounded: %s", out)
	}
	s.edit("site.toml", "pids = 80\n", "") // then the default applies
	s.edit("site.toml", "cpus = 1.5\n", "")
	s.edit("site.toml", "memory = \"160MiB\"\nswap = \"0\"\n", "")
	s.wantPlan("limit bound")
	s.do("up")
	s.settled()
	s.wantLimits("bound", 10, map[string][2]string{"pids": {"pids.max=8192", "pids.max=8192"},
		"cpu": {"cpu.cfs_quota_us=-1", "cpu.max=max 100000"}})
	s.edit("site.toml", "[node.free]\nid = 11\n", "[node.free]\nid = 11\npids = 0\n")
	s.wantPlan("limit free")
	s.do("up")
	s.settled()
	s.wantLimits("free", 11, map[string][2]string{"pids": {"pids.max=max", "pids.max=max"}})
}

// wantLimits looks at the files of a node's control group: of each controller in version 1, or else
// in version 2.
func (s *site) wantLimits(node string, id int, want map[string][2]string) {
	s.Helper()
	for controller, versions := range want {
		file, value, _ := strings.Cut(versions[0], "=")
		path := s.limitFile(id, controller, file)
		if _, err := os.Stat(path); err != nil {
			file, value, _ = strings.Cut(versions[1], "=")
			path = fmt.Sprintf("/sys/fs/cgroup/orrery/%s/%d/%s", s.name, id, file)
		}
		text, err := os.ReadFile(path)
		if got := strings.TrimSpace(string(text)); got != value || err != nil {
			s.Errorf("%s: %s is %q, want %q (%v)", node, path, got, value, err)
		}
	}
}

func (s *site) limitFile(id int, controller, file string) string {
	v1 := filepath.Join("/sys/fs/cgroup", controller, "orrery", s.name, fmt.Sprint(id), file)
	if _, err := os.Stat(v1); err == nil {
		return v1
	}
	return filepath.Join("/sys/fs/cgroup/orrery", s.name, fmt.Sprint(id), file)
}
