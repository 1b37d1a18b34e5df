package kvm

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/test/need"
)

// counted is a connection on which a guest counts: each line is one more than the line before.
type counted struct {
	lines chan int
}

// counts connects the host to a guest that counts, with a pause in seconds between numbers. The
// guest also opens a file for each number.
func (g ground) counts(t *testing.T, n *spec.Node, pause string) *counted {
	t.Helper()
	script := `use IO::Socket::INET; $l = IO::Socket::INET->new(LocalPort => 7000, Listen => 1) or die; $c = $l->accept; $c->autoflush(1);
		for ($n = 0; print $c "$n\n"; $n++) { -e "/nowhere$n"; select undef, undef, undef, ` + pause + ` }`
	must(t, g.Runner(engine.RefOf(n)).Run(t.Context(),
		host.Command{Args: []string{"sh", "-c", `setsid perl -e "$0" >/dev/null 2>&1 &`, script}}))
	address := n.NICs[0].Address.Addr().String()
	c := &counted{make(chan int, 1000)}
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		conn, err := net.Dial("tcp", address+":7000")
		if err == nil {
			t.Cleanup(func() { conn.Close() })
			go c.hear(conn)
			return c
		}
		if time.Since(begun) > time.Minute {
			t.Fatal(err)
		}
	}
}

func (c *counted) hear(conn net.Conn) {
	defer close(c.lines)
	for in := bufio.NewScanner(conn); in.Scan(); {
		n, err := strconv.Atoi(in.Text())
		if err != nil {
			return
		}
		c.lines <- n
	}
}

// resume waits for further numbers on a connection.
func (c *counted) goOn(t *testing.T, last *int) {
	t.Helper()
	for range len(c.lines) + 3 {
		select {
		case n, ok := <-c.lines:
			if !ok || n != *last+1 {
				t.Fatalf("after %d came %d, %t", *last, n, ok)
			}
			*last = n
		case <-time.After(time.Minute):
			t.Fatalf("after %d came nothing", *last)
		}
	}
}

func (g ground) says(t *testing.T, ref engine.Ref, args ...string) string {
	t.Helper()
	var out strings.Builder
	if err := g.Runner(ref).Run(t.Context(), host.Command{Args: args, Stdout: &out}); err != nil {
		t.Errorf("%q: %v", args, err)
	}
	return strings.TrimSpace(out.String())
}

// TestRenew: a machine continues in another QEMU with its processes, connections, volumes and
// console record. If the run that moves it is killed, the machine continues in one of the two.
//
// Promise (Virtual machines): Only root reads the memory of a machine in a snapshot, and a machine
// continues from it once.
func TestRenew(t *testing.T) {
	need.NewQEMU(t)
	t.Run("shared root", func(t *testing.T) { renews(t, site.VM{}, "/root/data") })
	disks := site.VM{Disk: site.QCow2, Size: 512 << 20,
		Disks: []site.Drive{{Name: "data", Disk: site.RawFile, Size: 64 << 20}}}
	t.Run("disks", func(t *testing.T) { renews(t, disks, "/dev/vdb") })
}

// renews tests that with a machine whose data is in a file or on a disk.
func renews(t *testing.T, vm site.VM, data string) {
	g := newGround(t)
	n := g.Node("mover", 3)
	n.Mounts = []spec.Mount{{Volume: "kept", Path: "/srv/kept"}}
	n.VM = vm
	ref := engine.RefOf(n)
	m := g.machine(ref)
	must(t, g.Create(t.Context(), n))
	must(t, g.Start(t.Context(), ref))
	booted := g.says(t, ref, "cat", "/proc/sys/kernel/random/boot_id")
	g.says(t, ref, "sh", "-c", "echo before >/srv/kept/file; echo before >/root/file; exec 9>/root/held; echo held >&9; printf before | dd of="+data+" conv=fsync status=none")
	last := -1
	c := g.counts(t, n, "0.3")
	c.goOn(t, &last)

	g.says(t, ref, "cat", "/etc/orrery/.nics.json")
	// Replace a file, so that the guest remembers one that no longer has a path.
	must(t, writeGuestNICs(g.Dirs, ref, n.NICs))

	before := m.qemu()
	how, err := g.LiveUpgrade(t.Context(), ref)
	must(t, err)
	t.Logf("downtime %v, altogether %v, %d bytes", how.Downtime, how.Took, how.Bytes)
	if m.qemu() == before || len(otherRecorders(m.Group())) != 3 {
		t.Errorf("QEMU was %d and is %d of %v", before, m.qemu(), m.Group().Processes())
	}
	if held, ok := m.Group().InForce(hostLimits(n, 1)); !ok {
		t.Errorf("its limits are %+v", held)
	}
	c.goOn(t, &last)
	if now := g.says(t, ref, "cat", "/proc/sys/kernel/random/boot_id"); now != booted {
		t.Error("it has booted anew")
	}
	look := "sync; echo 3 >/proc/sys/vm/drop_caches; cat /srv/kept/file /root/file; head -c6 " + data
	if text := g.says(t, ref, "sh", "-c",
		look+"; echo after >/srv/kept/file; echo after >/root/after; ls /etc/orrery"); !strings.HasPrefix(text,
		"before\nbefore\nbefore") {
		t.Errorf("its files: %q", text)
	}
	for _, left := range []string{m.handoverFile(), m.nextRun()} {
		if _, err := os.Lstat(left); err == nil {
			t.Errorf("%s is left", left)
		}
	}
	g.says(t, ref, "sh", "-c", "echo printed in another QEMU >/dev/console")
	awaitPrinted(t, m, "printed in another QEMU")

	// If the run is killed before the state has been sent, the machine stays where it was. If it is
	// killed after that, the machine continues in the new QEMU.
	r, err := g.Record(ref)
	must(t, err)
	before = m.qemu()
	over, err := takeOver(g.guests, m)
	must(t, err)
	old, err := m.monitor(t.Context())
	must(t, err)
	next := newLaunch(g.Nodes, g.programs, over.next(), r)
	must(t, next.matchOld(t.Context(), old))
	must(t, old.Close())
	must(t, next.startSuccessor(t.Context(), m))
	must(t, next.close())
	if len(otherRecorders(m.Group())) != 6 {
		t.Errorf("its processes are %v", m.Group().Processes())
	}
	must(t, g.Sweep(t.Context(), testSite))
	if m.qemu() != before || len(otherRecorders(m.Group())) != 3 {
		t.Errorf("QEMU was %d and is %d of %v", before, m.qemu(), m.Group().Processes())
	}
	if status := g.status(t, ref); status != qmp.Running {
		t.Errorf("it is %s", status)
	}
	c.goOn(t, &last)
	must(t, over.save())
	_, err = g.migrateToNew(t.Context(), over, r)
	must(t, err)
	must(t, g.Sweep(t.Context(), testSite))
	if m.qemu() == before || len(otherRecorders(m.Group())) != 3 {
		t.Errorf("QEMU was %d and is %d of %v", before, m.qemu(), m.Group().Processes())
	}
	if held, ok := m.Group().InForce(hostLimits(n, 1)); !ok {
		t.Errorf("its limits are %+v", held)
	}
	c.goOn(t, &last)
	if now := g.says(t, ref, "cat", "/proc/sys/kernel/random/boot_id"); now != booted {
		t.Error("it has booted anew")
	}
	g.remembers(t, ref, booted, vm.Disk != "")
	must(t, g.Stop(context.WithoutCancel(t.Context()), ref))
	if text, err := os.ReadFile(m.console()); err != nil || !strings.Contains(string(text), "Power down") {
		t.Errorf("of its console is kept %q, %v", text, err)
	}
}

// remembers saves a node's memory and starts the node from it, twice. The saved machine itself
// continues, and so does one started from the file. If the run that saves is killed, the machine
// continues.
func (g ground) remembers(t *testing.T, ref engine.Ref, booted string, disks bool) {
	t.Helper()
	m := g.machine(ref)
	file := filepath.Join(t.TempDir(), "memory")
	const alive = "kill -0 $(cat /root/asleep) && cat /proc/sys/kernel/random/boot_id"
	g.says(t, ref, "sh", "-c", "setsid sleep 100000 >/dev/null 2>&1 & echo $! >/root/asleep")
	must(t, g.Freeze(t.Context(), ref))
	must(t, g.SaveMemory(t.Context(), ref, file))
	if status := g.status(t, ref); status == qmp.Running {
		t.Error("it does not stand still until it is told to go on")
	}
	then := filepath.Join(t.TempDir(), "disks")
	copies := func(from, to string) {
		if out, err := exec.Command("cp", "-a", "--sparse=always", from, to).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	if disks {
		copies(g.machine(ref).Disks(), then)
	}
	must(t, g.Thaw(t.Context(), ref))
	if disks {
		g.says(t, ref, "sh", "-c", "printf after! | dd of=/dev/vdb conv=fsync status=none; rm /root/file; sync")
	}
	if got := g.says(t, ref, "sh", "-c", alive); got != booted {
		t.Errorf("it does not go on after its memory was kept: %q", got)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	must(t, g.Freeze(t.Context(), ref))
	must(t, m.whileHalted(t.Context(), func(*qmp.Client) error { return nil })) // the run that halted it is killed
	must(t, g.Sweep(t.Context(), testSite))
	if status := g.status(t, ref); status != qmp.Running {
		t.Errorf("it is %s", status)
	}
	must(t, m.Group().Kill(t.Context()))
	if disks {
		must(t, os.RemoveAll(g.machine(ref).Disks()))
		copies(then, g.machine(ref).Disks())
	}
	must(t, g.ResumeFrom(ref, file))
	must(t, g.Start(t.Context(), ref))
	if disks {
		const look = "sync; echo 3 >/proc/sys/vm/drop_caches; cat /root/file; head -c6 /dev/vdb; dmesg | grep -c 'EXT4-fs error' || true"
		if got := g.says(t, ref, "sh", "-c", look); got != "before\nbefore0" {
			t.Errorf("its disks are not those of its memory: %q", got)
		}
	}
	if got := g.says(t, ref, "sh", "-c", alive); got != booted {
		t.Errorf("it does not go on from its memory: %q", got)
	}
	if _, err := os.Lstat(m.Memory()); err == nil {
		t.Error("what it went on from is left")
	}
	must(t, g.Freeze(t.Context(), ref)) // a machine whose memory was saved powers off as any other does
	must(t, g.SaveMemory(t.Context(), ref, file+" again"))
	must(t, g.Thaw(t.Context(), ref))
}

func (g ground) status(t *testing.T, ref engine.Ref) string {
	t.Helper()
	q, err := g.machine(ref).monitor(t.Context())
	must(t, err)
	defer q.Close()
	status, err := q.Status(t.Context())
	must(t, err)
	return status
}
