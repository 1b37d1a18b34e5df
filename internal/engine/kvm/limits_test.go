package kvm

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/engine"
	"orrery/internal/engine/confine"
	"orrery/internal/host"
	"orrery/internal/host/numa"
	"orrery/internal/host/process"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestBounds: a machine with memory of one NUMA node runs on the processors of that node, unless it
// is pinned. Its memory limit exceeds the guest's memory, with room for virtiofsd's files. Two
// machines have twice as much.
//
// Promise (Virtual machines): QEMU and virtiofsd have bounded memory, threads, open files and
// devices, whatever the guest does. With engine/kvm.TestMishaps, host/cgroup.TestAllowDevices.
func TestBounds(t *testing.T) {
	nodes := numa.Nodes(numa.Sys)
	if len(nodes) == 0 {
		t.Skip("this kernel tells of no NUMA node")
	}
	n := &spec.Node{Limits: site.Limits{Cpus: 1, Memory: 1 << 30}, VM: site.VM{Numa: &nodes[0].ID}}
	want := site.Limits{Cpus: 1, Pin: nodes[0].Online, Memory: 2<<30 + 64<<20, Pids: 1025}
	if got := hostLimits(n, 1); got != want {
		t.Errorf("%+v", got)
	}
	if got := hostLimits(n, 2); got.Memory != 2*want.Memory || got.Pids != 2*want.Pids || got.Cpus != 1 {
		t.Errorf("of two machines: %+v", got)
	}
	n.Limits.Pin = "0"
	if got := hostLimits(n, 1); got.Pin != "0" {
		t.Errorf("%+v", got)
	}
	n.VM.Numa, n.Limits.Pin = nil, ""
	if got := hostLimits(n, 1); got.Pin != "" {
		t.Errorf("%+v", got)
	}
	const fileBytes = 4500 // measured: 20,000 files cost 90 MB, half of it in the kernel
	if files := int64(confine.MaxFiles * fileBytes); overheadBytes < files+256<<20 {
		t.Errorf("virtiofsd can take %d MiB, and QEMU has to have its own", files>>20)
	}
}

// bounded checks that the limits of a running machine are in force. Its guest can fill virtiofsd
// with files up to a limit, and can open others when it forgets those.
func (g ground) bounded(t *testing.T, n *spec.Node) {
	t.Helper()
	ref := engine.RefOf(n)
	m := g.machine(ref)
	if held, ok := m.Group().InForce(hostLimits(n, 1)); !ok {
		t.Errorf("its limits are %+v", held)
	}
	look := exec.Command("head", "-c1", "/dev/zero")
	must(t, host.OnLockedThread(func() error { return m.Group().Start(look) }))
	if look.Wait() == nil {
		t.Error("its programs may open devices of the host")
	}
	var files unix.Rlimit
	must(t, unix.Prlimit(m.virtiofsdPID(), unix.RLIMIT_NOFILE, nil, &files))
	if files.Max > confine.MaxFiles {
		t.Errorf("virtiofsd may have %d files open", files.Max)
	}
	open, err := os.ReadDir(process.Host.File(m.virtiofsdPID(), "fd"))
	must(t, err)
	few := unix.Rlimit{Cur: uint64(len(open)) + 100, Max: files.Max}
	must(t, unix.Prlimit(m.virtiofsdPID(), unix.RLIMIT_NOFILE, &few, nil))
	// Forgetting takes a while, and no program can be opened to wait by: the shell asks the kernel for the time.
	said := g.says(t, ref, "sh", "-c",
		`mkdir /root/new; cd /root/new; i=0; while [ $i -lt 300 ]; do true >$i || break; i=$((i+1)); done 2>&1
		read now rest </proc/uptime; end=$((${now%.*} + 60))
		while [ ${now%.*} -lt $end ]; do
			echo 2 >/proc/sys/vm/drop_caches; { true >again; } 2>/dev/null && echo again && break
			read now rest </proc/uptime
		done`)
	must(t, unix.Prlimit(m.virtiofsdPID(), unix.RLIMIT_NOFILE, &files, nil))
	if !strings.Contains(said, "oo many open files") || !strings.HasSuffix(said, "again") {
		t.Errorf("a guest with too many files: %s", said)
	}
	g.says(t, ref, "rm", "-r", "/root/new")
}
