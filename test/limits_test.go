package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/host/cgroup"
	"orrery/internal/observe"
)

// TestLimits: limits are in force, according to the kernel and as seen in a node, and change while
// a node runs.
//
// Promise (What nodes may do to the host): A node has at most 8192 processes unless the site file
// says otherwise. With site/sitefile.TestDefaultPids.
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

// TestDiskLimits: reading and writing of a container is limited, also after a change while it runs, and it
// cannot lift the limits.
func TestDiskLimits(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-disks", `
network = {}
[image.debian]
suite = "bookworm"
[node.bound]
id = 10
disk = { read = "8MB/s", write = "4MB/s" }
`, nil)
	if lacks := cgroup.LacksDiskLimits(); lacks != (observe.Missing{}) {
		s.run("plan").want(4, lacks.What)
		return
	}
	s.do("up")
	s.settled()
	const writes, reads = "dd if=/dev/zero of=/root/x bs=64k count=%d oflag=direct", "dd if=/root/x of=/dev/null bs=64k count=%d iflag=direct"
	s.wantAtMost("bound", writes, 32, 4)
	s.wantAtMost("bound", reads, 32, 8)
	if r := s.run("shell", "bound", "--", "mkdir", "/sys/fs/cgroup/blkio/free"); r.status == 0 {
		t.Error("the node creates groups without limits")
	}
	s.edit("site.toml", `write = "4MB/s"`, `write = "2MB/s", iops = 16`)
	s.wantPlan("limit bound")
	s.run("plan", "--diff").want(10, "disk changed")
	s.do("up")
	s.settled()
	s.wantAtMost("bound", writes, 16, 16*64e3/1e6) // 16 requests of 64 KiB in a second

	// Another program changes a limit.
	held, file := s.diskLimitFile(10)
	before, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, []byte(strings.Fields(string(before))[0]+held), 0))
	s.wantPlan("limit bound")
	s.do("up")
	s.settled()
	if after, _ := os.ReadFile(file); string(after) != string(before) {
		t.Errorf("%s was %s and is %s", file, before, after)
	}
	s.edit("site.toml", `disk = { read = "8MB/s", write = "2MB/s", iops = 16 }`, "")
	s.wantPlan("limit bound")
	s.do("up")
	s.settled()
	if after, _ := os.ReadFile(file); strings.TrimSpace(string(after)) != "" {
		t.Errorf("%s has %s", file, after)
	}
}

// diskLimitFile returns the file with the limit of writing of a node, and what changes it.
func (s *site) diskLimitFile(id int) (change, path string) {
	if path = s.limitFile(id, "blkio", "blkio.throttle.write_bps_device"); strings.Contains(path, "/blkio/") {
		return " 9000000", path
	}
	return " wbps=9000000", s.limitFile(id, "io", "io.max")
}

// wantAtMost runs dd(1) with a number of blocks of 64 KiB in a node. It must not be faster than so many MB/s; a
// busy machine can only be slower.
func (s *site) wantAtMost(node, format string, blocks int, most float64) {
	s.Helper()
	begun := time.Now()
	s.sh(node, fmt.Sprintf(format, blocks)+" 2>/dev/null")
	// The kernel lets the share of a slice of 100 ms pass at once.
	took, bytes := time.Since(begun).Seconds()+0.2, float64(blocks*64<<10)
	if got := bytes / 1e6 / took; got > most*1.03 {
		s.Errorf("%.2f MB/s instead of %.2f in %s of %s", got, most, node, format)
	}
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
