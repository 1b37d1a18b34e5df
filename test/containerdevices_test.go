package test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host/cgroup"
	"orrery/test/need"
)

// A loop is a loop device of this host with a number that no other program picks. The kernel detaches it when
// the last process closes it, including this one when it is killed.
type loop struct {
	*testing.T
	number  int
	control *os.File
	backing string
	held    *os.File
}

func (l *loop) path() string { return fmt.Sprintf("/dev/loop%d", l.number) }

func newLoop(t *testing.T, number int) *loop {
	t.Helper()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	need.Given(t, "loop devices", err)
	l := &loop{T: t, number: number, control: control, backing: filepath.Join(t.TempDir(), "disk")}
	must(t, os.WriteFile(l.backing, make([]byte, 4<<20), 0o600))
	t.Cleanup(func() {
		l.remove()
		_ = control.Close()
	})
	l.attach()
	return l
}

// attach makes the device, unless a killed test has left it, and gives it the file.
func (l *loop) attach() {
	l.Helper()
	const add, configure, autoclear = 0x4C80, 0x4C0A, 4 // linux/loop.h
	if err := unix.IoctlSetInt(int(l.control.Fd()), add, l.number); err != nil && !errors.Is(err, unix.EEXIST) {
		l.Fatal(err)
	}
	file, err := os.OpenFile(l.backing, os.O_RDWR, 0)
	must(l.T, err)
	defer file.Close()
	l.held, err = os.OpenFile(l.path(), os.O_RDWR, 0)
	must(l.T, err)
	config := &unix.LoopConfig{Fd: uint32(file.Fd())}
	config.Info.Flags = autoclear
	must(l.T, unix.IoctlLoopConfigure(int(l.held.Fd()), config))
}

// remove removes the device from the host. The kernel may use it for a moment longer.
func (l *loop) remove() {
	l.Helper()
	const remove = 0x4C81
	_ = l.held.Close()
	for range 300 {
		err := unix.IoctlSetInt(int(l.control.Fd()), remove, l.number)
		if err == nil || errors.Is(err, unix.ENODEV) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	l.Errorf("%s is in use", l.path())
}

// mountFUSE mounts a FUSE file system without a server, and unmounts it.
const mountFUSE = `exec 3<>/dev/fuse && mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 x /mnt &&
grep -c " /mnt fuse" /proc/mounts; umount -l /mnt`

// TestContainerDevices: nodes use devices of their host, each one alone unless they share it, and whatever happens to
// the device.
//
// Promise (What nodes may do to the host): A node gets only the devices of the host that `devices` names, with
// their mode; none that the host or another node uses, and none that reaches the host's memory, or a disk without
// the kernel's checks. With host/devices.TestDangerous, host/devices.TestResolve, host/devices.TestInUse,
// host/devices.TestClaims, engine/disk.TestDevices.
func TestContainerDevices(t *testing.T) {
	t.Parallel()
	const number = 3107
	s := newSite(t, "it-lent", strings.ReplaceAll(`
network = {}
[image.debian]
suite = "bookworm"
[node.disk]
id = 10
devices = ["LOOP", { path = "/dev/fuse", shared = true }]
[node.other]
id = 11
devices = [{ path = "/dev/fuse", shared = true }]
`, "LOOP", fmt.Sprintf("/dev/loop%d", number)), nil)
	l := newLoop(t, number)
	claims := fmt.Sprintf("/run/orrery/devices/block-7-%d", number)

	// The host uses it.
	exclusive, err := unix.Open(l.path(), unix.O_RDONLY|unix.O_EXCL, 0)
	must(t, err)
	s.run("plan").want(4, l.path()+" is in use by this host")
	must(t, unix.Close(exclusive))

	s.do("up")
	s.settled()
	if got := s.sh("disk", "stat -c '%F %u %g' "+l.path()+" /dev/fuse"); got !=
		"block special file 0 0\ncharacter special file 0 0" {
		t.Errorf("the node has %q", got)
	}
	s.sh("disk", "printf written-by-a-node | dd of="+l.path()+" bs=512 conv=sync,fsync 2>/dev/null")
	if text, err := os.ReadFile(l.backing); err != nil || !bytes.HasPrefix(text, []byte("written-by-a-node")) {
		t.Errorf("the device has %q, %v", text[:32], err)
	}
	if got := s.sh("disk", "head -c 17 "+l.path()); got != "written-by-a-node" {
		t.Errorf("the node reads %q", got)
	}
	for _, node := range []string{"disk", "other"} {
		if _, err := os.Stat("/sys/module/fuse"); err != nil {
			break
		}
		if got := s.sh(node, mountFUSE); got != "1" {
			t.Errorf("%s: %s", node, got)
		}
	}
	if r := s.run("shell", "other", "--", "sh", "-c", "test -e "+l.path()); r.status == 0 {
		t.Error("another node has the device")
	}

	// Nobody else gets it.
	second := newSite(t, "it-lent2", fmt.Sprintf("network = {}\n[image.debian]\nsuite = \"bookworm\"\n"+
		"[node.disk]\nid = 10\ndevices = [{ path = \"block:7:%d\", shared = true }]\n", number), nil)
	second.run("plan").want(4, l.path()+" is used by node it-lent/10", "stop that node first")
	taken := `[{ path = "` + l.path() + `" }, { path`
	s.edit("site.toml", "[{ path", taken)
	s.run("check").want(3, `site.toml:\d+: device `+l.path()+" is already used by node disk")
	s.edit("site.toml", taken, "[{ path")

	// A node keeps its devices when it boots again on its own. Asked from inside: for a moment it has no init.
	const sinceBoot = "head -c1 %s >/dev/null && cut -d' ' -f22 /proc/1/stat"
	booted := func() result { return s.run("shell", "disk", "--", "sh", "-c", fmt.Sprintf(sinceBoot, l.path())) }
	before := booted()
	before.want(0)
	s.run("shell", "disk", "--", "systemctl", "reboot")
	for n := 0; ; n++ {
		if now := booted(); now.status == 0 && now.out != before.out {
			break
		}
		if time.Sleep(200 * time.Millisecond); n == 300 {
			t.Fatal("the node does not boot again with its device")
		}
	}
	s.settled()

	// Another program takes the device from the node's group.
	deny := filepath.Join("/sys/fs/cgroup/devices", cgroup.OfNode(s.name, 10).Name(), "devices.deny")
	if os.WriteFile(deny, fmt.Appendf(nil, "b 7:%d rw", number), 0) == nil {
		s.run("plan").want(10, "devices changed")
		s.do("up")
		s.settled()
	}

	// The mode is a limit.
	s.edit("site.toml", `"`+l.path()+`"`, `{ path = "`+l.path()+`", mode = "r" }`)
	s.run("plan").want(10, "devices changed")
	s.do("up")
	s.settled()
	if r := s.run("shell", "disk", "--", "dd", "if=/dev/zero", "of="+l.path(), "count=1"); r.status == 0 {
		t.Error("the node writes to the device")
	}
	s.sh("disk", "head -c1 "+l.path())

	// The device vanishes while the node runs, and comes back.
	l.remove()
	s.run("plan").want(4, l.path()+" does not exist")
	l.attach()
	s.settled()

	s.do("stop", "disk")
	if _, err := os.Stat(claims); err == nil {
		t.Error("a stopped node has a claim")
	}
	s.do("up")
	if _, err := os.Stat(claims); err != nil {
		t.Error(err)
	}
	s.do("down")
	if _, err := os.Stat(claims); err == nil {
		t.Error("a claim is left")
	}
	if text, err := sh("grep -l it-lent/ /run/orrery/devices/*"); err == nil {
		t.Errorf("claims are left: %s", text)
	}
	second.run("plan").want(10)
}
