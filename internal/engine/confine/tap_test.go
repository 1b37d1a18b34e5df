package confine

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/vishvananda/netlink"

	"orrery/internal/host"
	"orrery/internal/host/cgroup"
	"orrery/test/need"
)

// TestTapInACell: a program that has received a tap cannot make it persistent, give it to others,
// or change the host's end.
//
// Promise (Virtual machines): A guest that took over QEMU cannot keep its link on the host, give it
// away, rename it or change its address. With host/seccomp.TestHostsEnd.
func TestTapInACell(t *testing.T) {
	need.Integration(t)
	program := need.Attack(t)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "it-confine"
	tap := &netlink.Tuntap{LinkAttrs: attrs, Mode: netlink.TUNTAP_MODE_TAP,
		Flags: netlink.TUNTAP_NO_PI | netlink.TUNTAP_VNET_HDR, Queues: 1}
	must(t, netlink.LinkAdd(tap))
	t.Cleanup(func() { _ = netlink.LinkDel(tap) })
	before, err := netlink.LinkByName(attrs.Name)
	must(t, err)

	dir, in := t.TempDir(), cgroup.OfNode("it-confine", 3)
	at := filepath.Join(dir, "cell")
	must(t, os.Mkdir(at, 0o700))
	cmd := exec.Command(program, "tap", "3")
	cmd.ExtraFiles = tap.Fds
	ended(t, cmd, in)
	var said bytes.Buffer
	cmd.Stdout = &said
	c := Sandbox{At: at, User: first + 65535, Sees: append(QEMUPaths(program), program)}
	must(t, host.OnLockedThread(func() error { return c.Start(cmd, in) }))
	must(t, cmd.Wait())
	if said.String() != "allowed: []\n" {
		t.Errorf("it said %q", said.String())
	}
	if after, err := netlink.LinkByName(attrs.Name); err != nil ||
		after.Attrs().HardwareAddr.String() != before.Attrs().HardwareAddr.String() {
		t.Errorf("the host's end is another: %v", err)
	}
	for _, f := range tap.Fds {
		must(t, f.Close())
	}
}
