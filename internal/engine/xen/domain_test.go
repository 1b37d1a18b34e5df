package xen

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/host"
)

// xenstoreVariable names the directory for what a card's script writes to xenstore.
const xenstoreVariable = "ORRERY_XEN_TEST_STORE"

// How a guest has ended, as it reports itself.
const (
	poweredOff = "poweroff"
	rebooted   = "reboot"
	crashed    = ""
)

func (d dom0) ending(one guestDomain) string {
	text, _ := os.ReadFile(filepath.Join(d.home(one.Name), "ending"))
	return string(text)
}

// watch creates a domain, reports the result, and watches it until it ends. Then it destroys the
// domain or, after a reboot, creates it again.
func watch(config, half string) error {
	d := toolstackHere()
	if err := os.Unsetenv(roleVariable); err != nil { // programs started by this one get roles of their own
		return err
	}
	tell := os.NewFile(3, "told")
	unix.CloseOnExec(3)
	if err := dom0Devices(d.dir); err != nil {
		return err
	}
	m := &made{}
	err := m.make(d, config)
	if err == nil && half != "" {
		err = errors.New("libxl: error: libxl_create.c:1:x: Domain 1:it was to fail half way")
	}
	said := ""
	if err != nil {
		said = err.Error()
	}
	if err := json.NewEncoder(tell).Encode(said); err != nil {
		return err
	}
	_ = tell.Close()
	if err != nil {
		return err // the rest of the domain stays, as with an xl that was killed
	}
	for {
		_ = m.guest.Wait()
		now, err := d.domain(m.Name)
		if err != nil || now.ID != m.ID {
			return nil // it was destroyed
		}
		ending := d.ending(m.guestDomain)
		if err := d.destroy(m.guestDomain); err != nil {
			return err // another process was faster
		}
		_ = m.model.Wait()
		if ending != rebooted {
			return nil
		}
		m = &made{}
		if err := m.make(d, config); err != nil {
			return err
		}
	}
}

// dom0Devices makes Xen's devices and a few others visible to this process and its children, and to
// no other process.
func dom0Devices(dir string) error {
	dev := filepath.Join(dir, "dev")
	if err := os.MkdirAll(dev, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("dev", dev, "tmpfs", unix.MS_NOSUID, "mode=755"); err != nil {
		return err
	}
	for _, name := range []string{"pts", "xen"} {
		if err := os.Mkdir(filepath.Join(dev, name), 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("/dev/pts", filepath.Join(dev, "pts"), "", unix.MS_BIND, ""); err != nil {
		return err
	}
	for name, minor := range map[string]uint32{
		"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9, "xen/privcmd": 3, "xen/evtchn": 3, "xen/gntdev": 3,
		"xen/xenbus": 3,
	} {
		path := filepath.Join(dev, name)
		if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, minor))); err != nil {
			return err
		}
		if err := os.Chmod(path, 0o666); err != nil {
			return err
		}
	}
	// Mount complete ones, because a guest may mount only what its creator sees.
	for _, kind := range []string{"proc", "sysfs"} {
		at := filepath.Join(dev, "."+kind)
		if err := os.Mkdir(at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(kind, at, kind, 0, ""); err != nil {
			return err
		}
	}
	return unix.Mount(dev, "/dev", "", unix.MS_MOVE, "")
}

// made is a domain that this process has created.
type made struct {
	guestDomain
	guest, model *exec.Cmd
}

// make creates a domain from its configuration: first the guest, which waits, then its QEMU, then
// its cards. Then it lets the guest run.
func (m *made) make(d dom0, path string) (err error) {
	o := read(path)
	if m.guestDomain, err = d.take(o.one("name"), path); err != nil {
		return err
	}
	var rings []*ring
	defer func() {
		for _, r := range rings {
			r.close()
		}
	}()
	for range o["channel"] {
		r, err := newRing()
		if err != nil {
			return err
		}
		rings = append(rings, r)
	}
	start, err := m.startGuest(d, o, rings)
	if err != nil {
		return err
	}
	defer start.Close()
	if err := m.startModel(d, o, rings); err != nil {
		return fmt.Errorf("libxl: error: libxl_dm.c:1:x: Domain %d:device model: %w", m.ID, err)
	}
	for i, card := range o.cards() {
		if err := m.plug(d, i, card); err != nil {
			return fmt.Errorf("libxl: error: libxl_exec.c:1:x: Domain %d:script: %s: %w", m.ID, card["script"], err)
		}
	}
	if err := d.record(m.guestDomain); err != nil {
		return err
	}
	var ways []string
	for _, r := range rings {
		ways = append(ways, r.path)
	}
	return json.NewEncoder(start).Encode(guestOrder{Line: o.one("cmdline"), Shares: o.devices("p9"), Consoles: ways})
}

// A ring is one console shared by a guest and its QEMU: a terminal.
type ring struct {
	ours, theirs *os.File
	path         string // of the guest's end
}

func newRing() (*ring, error) {
	ours, err := os.OpenFile("/dev/pts/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	number, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	path := "/dev/pts/" + strconv.Itoa(number)
	theirs, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	return &ring{ours, theirs, path}, nil
}

func (r *ring) close() {
	_ = r.ours.Close()
	_ = r.theirs.Close()
}

// startGuest starts the first process of a guest, as root of the guest's user ids and in a control
// group of its own. The process waits for its order on start.
func (m *made) startGuest(d dom0, o options, rings []*ring) (start *os.File, err error) {
	var root unix.Stat_t
	if err := unix.Stat(o.devices("p9")[0]["path"], &root); err != nil {
		return nil, err
	}
	for _, r := range rings {
		if err := os.Chown(r.path, int(root.Uid), int(root.Uid)); err != nil {
			return nil, err
		}
	}
	order, start, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer order.Close()
	ending, err := os.Create(filepath.Join(d.home(m.Name), "ending"))
	if err != nil {
		return nil, err
	}
	defer ending.Close()
	log, err := os.OpenFile(filepath.Join(d.dir, "console-"+m.Name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	m.guest = exec.Command(self)
	m.guest.Env, m.guest.Dir, m.guest.Stdout, m.guest.Stderr = []string{roleVariable + "=" + boots, "PATH=" + host.Path},
		"/", log, log
	m.guest.ExtraFiles = []*os.File{order, ending}
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(root.Uid), Size: 65536}}
	m.guest.SysProcAttr = &syscall.SysProcAttr{
		Setsid: true, Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
			unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
		UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true, Credential: &syscall.Credential{},
	}
	if err := host.OnLockedThread(func() error { return m.group().Start(m.guest) }); err != nil {
		return nil, errors.Join(err, start.Close())
	}
	m.Guest = m.guest.Process.Pid
	return start, d.record(m.guestDomain)
}

// startModel starts the device model with the options that libxl passes, and waits until it reports
// that it is ready.
func (m *made) startModel(d dom0, o options, rings []*ring) error {
	ready, told, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	log, err := os.OpenFile(filepath.Join(d.dir, "qemu-dm-"+m.Name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{"-xen-domid", strconv.Itoa(m.ID), "-no-shutdown", "-name", m.Name, "-add-fd",
		"fd=3,set=0,opaque=ready"}
	files := []*os.File{told}
	for i, channel := range o.devices("channel") {
		args = append(args, "-chardev", fmt.Sprintf("socket,id=libxl-channel%d,path=%s,server=on,wait=off", i,
			channel["path"]))
		args = append(args, "-add-fd", fmt.Sprintf("fd=%d,set=1", 3+len(files)), "-add-fd",
			fmt.Sprintf("fd=%d,set=2", 4+len(files)))
		// While the guest's end is open somewhere, QEMU's end can be read.
		files = append(files, rings[i].ours, rings[i].theirs)
	}
	m.model = exec.Command(o.one("device_model_override"), args...)
	m.model.ExtraFiles, m.model.Stdout, m.model.Stderr, m.model.Dir = files, log, log, "/"
	m.model.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := m.model.Start(); err != nil {
		return err
	}
	_ = told.Close()
	m.Backend = m.model.Process.Pid
	if err := d.record(m.guestDomain); err != nil {
		return err
	}
	if n, _ := ready.Read(make([]byte, 1)); n == 0 {
		_ = m.model.Wait()
		said, _ := os.ReadFile(log.Name())
		return fmt.Errorf("spawn failed: %s", said)
	}
	return nil
}

// plug creates a card of the guest and runs its script, which must report in xenstore that it is
// done.
func (m *made) plug(d dom0, i int, card map[string]string) error {
	name, theirs := fmt.Sprintf("vif%d.%d", m.ID, i), fmt.Sprintf("xg%d.%d", m.ID, i)
	mac, err := net.ParseMAC(card["mac"])
	if err != nil {
		return err
	}
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: theirs, PeerHardwareAddr: mac}
	if err := netlink.LinkAdd(pair); err != nil {
		return err
	}
	our, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	m.Links = append(m.Links, our.Attrs().Index)
	their, err := netlink.LinkByName(theirs)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetNsPid(their, m.Guest); err != nil {
		return err
	}
	if err := d.record(m.guestDomain); err != nil {
		return err
	}
	store := filepath.Join(d.home(m.Name), "vif"+strconv.Itoa(i))
	if err := os.Mkdir(store, 0o700); err != nil {
		return err
	}
	script := exec.Command(card["script"], "online", "type_if=vif")
	script.Env = append(os.Environ(), "vif="+name, fmt.Sprintf("XENBUS_PATH=backend/vif/%d/%d", m.ID, i),
		xenstoreVariable+"="+store)
	if said, err := script.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(said)))
	}
	if word, _ := os.ReadFile(filepath.Join(store, "hotplug-status")); string(word) != "connected" {
		return fmt.Errorf("hotplug-status is %q", word)
	}
	return nil
}
