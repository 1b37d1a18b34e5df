package kvm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/network/ends"
	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestDisks: a machine has a root disk and others. What it has written is there after a reboot, and
// what the host has written in between is shown once. Disks are added, removed and changed while
// the machine runs. If the host has no room, the machine stops without losing anything. Memory that
// the guest frees returns to the host.
func TestDisks(t *testing.T) {
	g := newGround(t)
	n := g.Node("keeper", 1)
	ref := engine.RefOf(n)
	n.Layer = g.Layer
	room := g.machine(ref).Disks()
	n.VM = site.VM{
		Disk: site.QCow2, Size: 1 << 30,
		Disks: []site.Drive{{Name: "data", Disk: site.RawFile, Size: 64 << 20,
			DiskSettings: site.DiskSettings{Write: 32 << 20}}},
	}
	must(t, g.Create(t.Context(), n))
	must(t, g.Inject(t.Context(), ref, host.File{Path: "/etc/told", Content: []byte("first\n"), Mode: 0o644}))
	must(t, g.machine(ref).CreateDiskDir())
	must(t, unix.Mount("room", room, "tmpfs", 0, "size=90m"))
	t.Cleanup(func() { _ = unix.Unmount(room, unix.MNT_DETACH) }) // before the node is removed
	must(t, g.Start(t.Context(), ref))
	in := func(script string) string {
		t.Helper()
		out, err := host.Output(t.Context(), g.Runner(ref), host.Command{Args: []string{"sh", "-ec", script}}, 1<<16)
		if err != nil {
			t.Fatalf("%s: %v", script, err)
		}
		return strings.TrimSpace(string(out))
	}
	if got := in("cat /etc/told /etc/another; ls -A /.orrery-disks; awk '$5 == \"/\" || $5 == \"/etc/orrery\" { print $(NF-2) }' /proc/self/mountinfo"); got != "first\nlayer\noverlay\nvirtiofs" {
		t.Errorf("in the guest: %q", got)
	}
	if got := in("for f in /sys/block/*/serial; do cat $f; echo; done"); got != "orrery-root\ndata" {
		t.Errorf("it has the disks %q", got)
	}
	in("echo kept >/root/kept; echo its own >/etc/told; rm /etc/another; mkfs.ext4 -q /dev/vdb; mkdir /srv/data; mount /dev/vdb /srv/data; echo data >/srv/data/file; sync")
	if _, err := os.Stat(filepath.Join(g.Private(ref), "root/kept")); err == nil {
		t.Error("it wrote to a directory of the host")
	}

	// Disks are added, removed, grown and limited while the machine runs.
	changed := *n
	changed.VM.Size = 2 << 30
	changed.VM.Disks = []site.Drive{{Name: "data", Disk: site.RawFile, Size: 128 << 20,
		DiskSettings: site.DiskSettings{Write: 64 << 20}},
		{Name: "more", Disk: site.QCow2, Size: 64 << 20}}
	must(t, g.Change(t.Context(), &changed))
	if got := in("sleep 1; cat /sys/block/vdc/serial; echo; cat /sys/block/vdb/size /sys/block/vda/size"); got != "more\n262144\n4194304" {
		t.Errorf("a disk that was plugged, one that is larger: %q", got)
	}
	changed.VM.Disks = changed.VM.Disks[:1]
	in("mkfs.ext4 -q /dev/vdc; mkdir /srv/more; mount /dev/vdc /srv/more; echo unwritten >/srv/more/file")
	if err := g.Change(t.Context(), &changed); err == nil ||
		!strings.Contains(err.Error(), "disk more is in use by the mount at /srv/more") {
		t.Errorf("a disk that is mounted is unplugged: %v", err)
	}
	if got := in("cat /srv/more/file; umount /srv/more; cat /sys/block/vdc/serial"); got != "unwritten\nmore" {
		t.Errorf("of the disk that was mounted is left: %q", got)
	}
	must(t, g.Change(t.Context(), &changed))
	if got := in("ls /sys/block | grep vd | tr '\\n' ' '"); got != "vda vdb" {
		t.Errorf("a disk that was unplugged: it has %s", got)
	}
	g.wires(t, &changed)
	g.frees(t, ref)
	g.unlinked(t, &changed)
	must(t, g.Stop(t.Context(), ref))

	// The machine does not start with empty disks in place of its own.
	for _, name := range []string{"orrery-root.qcow2", "data.raw"} {
		at := filepath.Join(room, name)
		must(t, os.Rename(at, at+".aside"))
		if err := g.Start(t.Context(), ref); err == nil || !strings.Contains(err.Error(), "is missing") ||
			!strings.Contains(err.Error(), at) {
			t.Errorf("without %s: %v", name, err)
		}
		must(t, os.Rename(at+".aside", at))
	}

	// What the guest wrote is there again, and what the host has written since is newer.
	must(t, g.Inject(t.Context(), ref, host.File{Path: "/etc/told", Content: []byte("second\n"), Mode: 0o644}))
	must(t, g.Start(t.Context(), ref))
	if got := in("cat /etc/told /root/kept; test ! -e /etc/another; mount /dev/vdb /srv/data; cat /srv/data/file; df -m / | awk 'END { print ($2 > 1500) }'"); got != "second\nkept\ndata\n1" {
		t.Errorf("after it has booted again: %q", got)
	}
	if !ends.Exists(n.NICs[0].HostIfName) {
		t.Error("its link is not there again")
	}

	// The host has no more room: the machine stops, and continues when there is some.
	in(fill)
	for begun := time.Now(); g.state(t, ref) != observe.Frozen; time.Sleep(100 * time.Millisecond) {
		if time.Since(begun) > 2*time.Minute {
			t.Fatalf("on a host that is full it is %s", g.state(t, ref))
		}
	}
	must(t, unix.Mount("room", room, "tmpfs", unix.MS_REMOUNT, "size=400m"))
	must(t, g.Start(t.Context(), ref))
	if got := in("while systemctl -q is-active fill; do sleep 1; done; sync; stat -c %s /root/full; dmesg | grep -c 'I/O error' || true"); g.state(t,
		ref) != observe.Running || got != "104857600\n0" {
		t.Errorf("with room again, it is %s: %q", g.state(t, ref), got)
	}

	// What the guest frees on its disk returns to the host.
	full := used(t, room)
	in("rm /root/full; sync")
	for begun := time.Now(); used(t, room) > full-80<<20; time.Sleep(100 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatalf("the guest has freed 100 MiB, and its disks have %d MiB of the host after %d MiB", used(t, room)>>20,
				full>>20)
		}
	}

	// What the guest writes where the host has written before is newer, even if the guest reboots
	// by itself.
	in("echo third >/etc/told; sync")
	g.reboot(t, ref)
	if got := in("cat /etc/told"); got != "third" {
		t.Errorf("after it has rebooted by itself: %q", got)
	}

	// A machine that stopped for lack of room continues when it must stop, so that it can shut
	// down.
	must(t, unix.Mount("room", room, "tmpfs", unix.MS_REMOUNT, fmt.Sprintf("size=%d", used(t, room)+20<<20)))
	in(fill)
	for begun := time.Now(); g.state(t, ref) != observe.Frozen; time.Sleep(100 * time.Millisecond) {
		if time.Since(begun) > 2*time.Minute {
			t.Fatalf("on a host that is full again it is %s", g.state(t, ref))
		}
	}
	must(t, unix.Mount("room", room, "tmpfs", unix.MS_REMOUNT, "size=400m"))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	must(t, g.Stop(ctx, ref))
	if text, err := os.ReadFile(g.machine(ref).console()); err != nil || !strings.Contains(string(text), "Power down") {
		t.Errorf("it was killed: %v", err)
	}
}

// fill makes a guest write more than its host has room for. A guest that has just booted may have
// no bus yet.
const fill = `n=0
until systemd-run -q --unit=fill sh -c "head -c 100M /dev/zero | tr '\\0' x >/root/full; sync" 2>/dev/null
do n=$((n+1)); [ $n -lt 120 ]; sleep 0.5
done`

// used returns how many bytes of a file system are used.
func used(t *testing.T, at string) int64 {
	t.Helper()
	var of unix.Statfs_t
	must(t, unix.Statfs(at, &of))
	return int64(of.Blocks-of.Bfree) * of.Bsize
}

// unlinked deletes the link of a running machine. List reports that, and the next start creates the
// link again.
func (g ground) unlinked(t *testing.T, n *spec.Node) {
	t.Helper()
	link, err := netlink.LinkByName(n.NICs[0].HostIfName)
	must(t, err)
	must(t, netlink.LinkDel(link))
	all, err := g.List(t.Context(), testSite)
	must(t, err)
	if !slices.Equal(all[0].Unlinked, []string{n.NICs[0].Network}) {
		t.Errorf("without the link to %s it lacks links to %q", n.NICs[0].Network, all[0].Unlinked)
	}
}
