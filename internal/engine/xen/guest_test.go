package xen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/guest/agent"
	"orrery/internal/guest/boot"
)

// The signals by which the guest's init receives commands, as systemd does.
const (
	powersOff = unix.Signal(34 + 4)
	reboots   = unix.Signal(34 + 5)
)

// A guestOrder describes a guest: the command line of its kernel, 9p shares, and consoles.
type guestOrder struct {
	Line     string
	Shares   []map[string]string
	Consoles []string // terminals of Dom0
}

// boot1 plays the kernel of a guest, orrery-guest and the init, as the guest's first process.
func boot1() error {
	var blocked unix.Sigset_t
	for _, s := range []unix.Signal{powersOff, reboots} {
		blocked.Val[0] |= 1 << (uint(s) - 1)
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &blocked, nil); err != nil {
		// on this thread, which /proc/1/status shows and from which the other threads inherit
		return err
	}
	told := make(chan os.Signal, 4)
	signal.Notify(told, powersOff, reboots, unix.SIGCHLD)
	var order guestOrder
	in := os.NewFile(3, "order")
	if err := json.NewDecoder(in).Decode(&order); err != nil {
		return err
	}
	_ = in.Close()
	unix.CloseOnExec(4)
	config, err := boot.Decode(order.Line)
	if err != nil {
		return err
	}
	if err := order.mount(config); err != nil {
		return fmt.Errorf("root: %w", err)
	}
	if err := unix.Sethostname([]byte(config.Hostname)); err != nil {
		return err
	}
	if err := connect(config.NICs); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	if err := errors.Join(unix.Chroot(order.Shares[0]["path"]), unix.Chdir("/")); err != nil {
		return err
	}
	a := exec.Command("/proc/self/exe")
	a.Env, a.Stdout, a.Stderr = []string{roleVariable + "=" + serves}, os.Stdout, os.Stderr
	a.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := a.Start(); err != nil {
		return err
	}
	if err := errors.Join(os.Mkdir("/run/systemd", 0o755), os.WriteFile("/run/systemd/private", nil, 0o600)); err != nil {
		return err
	}
	for s := range told {
		switch s {
		case powersOff, reboots:
			_, err := os.NewFile(4, "ending").WriteString(map[os.Signal]string{powersOff: poweredOff, reboots: rebooted}[s])
			return err
		}
		for {
			var status unix.WaitStatus
			if pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
	return nil
}

// serve runs the agent.
func serve() error { return agent.Serve(context.Background()) }

// mount mounts the root as a guest sees it.
func (o guestOrder) mount(config *boot.Config) error {
	root := o.Shares[0]["path"]
	if o.Shares[0]["tag"] != boot.RootTag || config.Root != boot.NinePXen {
		return fmt.Errorf("the first of %v is not %s", o.Shares, boot.RootTag)
	}
	at := func(path string) string { return filepath.Join(root, path) }
	for _, m := range config.Mounts {
		dir := ""
		for _, s := range o.Shares {
			if s["tag"] == m.Tag {
				dir = s["path"]
			}
		}
		place, err := boot.OpenMountPoint(root, m.Path)
		if err != nil {
			return err
		}
		_ = place.Close()
		if err := unix.Mount(dir, at(m.Path), "", unix.MS_BIND, ""); err != nil {
			return &os.PathError{Op: "mount " + m.Tag, Path: m.Path, Err: err}
		}
	}
	for path, kind := range map[string]string{"proc": "proc", "sys": "sysfs", "dev": "tmpfs", "run": "tmpfs",
		"tmp": "tmpfs"} {
		if err := unix.Mount(kind, at(path), kind, 0, ""); err != nil {
			return &os.PathError{Op: "mount", Path: path, Err: err}
		}
	}
	if err := unix.Mount("bus", at("sys/bus"), "tmpfs", 0, ""); err != nil {
		return err
	}
	devices := map[string]string{"null": "/dev/null", "zero": "/dev/zero", "full": "/dev/full", "random": "/dev/random",
		"urandom": "/dev/urandom"}
	for i, terminal := range o.Consoles {
		if err := os.MkdirAll(at(fmt.Sprintf("sys/bus/xen/devices/console-%d", i)), 0o755); err != nil {
			return err
		}
		if i > 0 { // Xen up to 4.20 loses the first channel
			devices[fmt.Sprintf("hvc%d", i)] = terminal
		}
	}
	for name, from := range devices {
		if err := os.WriteFile(at("dev/"+name), nil, 0o600); err != nil {
			return err
		}
		if err := unix.Mount(from, at("dev/"+name), "", unix.MS_BIND, ""); err != nil {
			return &os.PathError{Op: "bind", Path: from, Err: err}
		}
	}
	if err := errors.Join(os.Mkdir(at("dev/pts"), 0o755), os.Symlink("pts/ptmx", at("dev/ptmx"))); err != nil {
		return err
	}
	return unix.Mount("devpts", at("dev/pts"), "devpts", 0, "newinstance,ptmxmode=0666")
}

// connect sets the names and addresses of the guest's cards.
func connect(nics []boot.NIC) error {
	links, err := netlink.LinkList()
	if err != nil {
		return err
	}
	for _, link := range links {
		if link.Attrs().Name == "lo" {
			if err := netlink.LinkSetUp(link); err != nil {
				return err
			}
		}
		for _, nic := range nics {
			if strings.EqualFold(link.Attrs().HardwareAddr.String(), nic.MAC) {
				if err := connectOne(link, nic); err != nil {
					return fmt.Errorf("%s: %w", nic.Name, err)
				}
			}
		}
	}
	return nil
}

func connectOne(link netlink.Link, nic boot.NIC) error {
	address, err := netlink.ParseAddr(nic.Address.String())
	if err != nil {
		return err
	}
	for _, do := range []func() error{
		func() error { return netlink.LinkSetName(link, nic.Name) },
		func() error { return netlink.LinkSetMTU(link, nic.MTU) },
		func() error { return netlink.AddrAdd(link, address) },
		func() error { return netlink.LinkSetUp(link) },
	} {
		if err := do(); err != nil {
			return err
		}
	}
	if nic.Gateway == "" {
		return nil
	}
	gateway, err := netlink.ParseAddr(nic.Gateway + "/32")
	if err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: gateway.IP})
}
