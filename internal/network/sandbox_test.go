package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/test/need"
)

const inSandbox = "ORRERY_NETWORK_SANDBOX"

// sandbox runs the rest of the test in a process with separate network and mount namespaces, and
// reports whether this is that process. Everything that the test makes is removed when the process
// ends, and that process ends with this one. So the test is hermetic. Any user can have such
// namespaces if the machine allows it.
func sandbox(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inSandbox) == t.Name() {
		if err := enter(); err != nil && !need.Asked() {
			t.Skipf("not run: this machine does not allow a sandbox: %v", err)
		} else {
			must(t, err)
		}
		return true
	}
	t.Parallel()
	options := []string{"-test.run=^" + t.Name() + "$", "-test.v", "-test.count=1"}
	cmd := exec.Command("/proc/self/exe", append(options, need.Covered()...)...)
	cmd.Env = append(os.Environ(), inSandbox+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL,
	}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	// Pdeathsig is sent when the thread that started the process ends, so it must not end before.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Skipf("not run: no new network namespace: %v", err)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	// A test that was skipped there counts as skipped here.
	for _, skip := range regexp.MustCompile(`--- SKIP: [^/\s]+/(\S+) .*\n\s*(.*)`).FindAllStringSubmatch(string(out), -1) {
		t.Run(skip[1], func(t *testing.T) { t.Skip(skip[2]) })
	}
	return false
}

// sandboxOfRoot is like sandbox, for tests of operations that only root of the host may do, such as
// making taps.
func sandboxOfRoot(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inSandbox) == "" && os.Geteuid() != 0 {
		t.Skip("only root can run this test")
	}
	return sandbox(t)
}

// enter prepares a new sandbox. It fails if the test could not work there.
func enter() error {
	for _, program := range []string{"bridge", "ping"} {
		if _, err := exec.LookPath(program); err != nil {
			return err
		}
	}
	if _, err := (&nftables.Conn{}).ListTables(); err != nil {
		return err
	}
	return errors.Join(up("lo"), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("run", "/run", "tmpfs", 0, ""))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func up(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

// at returns the only address of a port.
func at(address string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix(address)} }

// noNodes returns the ports of a site without nodes on this host.
func noNodes() ([]Port, error) { return nil, nil }

// A place is a network namespace: a node, or a machine outside.
type place struct {
	name string
	fd   int // of the namespace
}

// newPlace makes a network namespace with a link to this one. far is its end, with an address, and
// near is the local end.
func newPlace(t *testing.T, near, address, gateway string) *place {
	t.Helper()
	p := &place{name: near, fd: -1}
	p.new(t)
	must(t, netlink.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: near}, PeerName: "eth0", PeerNamespace: netlink.NsFd(p.fd),
	}))
	must(t, up(near))
	p.do(t, func() error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		a, err := netlink.ParseAddr(address)
		if err != nil {
			return err
		}
		if err := netlink.AddrAdd(link, a); err != nil {
			return err
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return err
		}
		if err := up("lo"); err != nil {
			return err
		}
		if gateway == "" {
			return nil
		}
		via, err := netlink.ParseAddr(gateway + "/32")
		if err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{Gw: via.IP})
	})
	return p
}

func (p *place) new(t *testing.T) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // not unlocked: the thread ends together with its namespace
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			p.fd, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		}
		done <- err
	}()
	must(t, <-done)
}

// do runs a function in the place.
func (p *place) do(t *testing.T, what func() error) {
	t.Helper()
	must(t, p.in(what))
}

func (p *place) in(what func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := unix.Setns(p.fd, unix.CLONE_NEWNET)
		if err == nil {
			err = what()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		return fmt.Errorf("in %s: %w", p.name, err)
	}
	return nil
}

// join puts the near end of a place's link on the bridge of a network.
func (p *place) join(t *testing.T, bridge string) {
	t.Helper()
	link, err := netlink.LinkByName(p.name)
	must(t, err)
	br, err := netlink.LinkByName(bridge)
	must(t, err)
	must(t, netlink.LinkSetMaster(link, br))
	must(t, AddAntiSpoof(context.Background(), []Port{p.port(t, bridge)}))
}

// plug puts a place on a bridge of the host, as another machine on its wire. Its port forwards
// frames at once.
func (p *place) plug(t *testing.T, bridge string) {
	t.Helper()
	link, err := netlink.LinkByName(p.name)
	must(t, err)
	br, err := netlink.LinkByName(bridge)
	must(t, err)
	must(t, netlink.LinkSetMaster(link, br))
	must(t, exec.Command("bridge", "link", "set", "dev", p.name, "state", "3").Run())
}

// port returns a port for a place with the place's own addresses.
func (p *place) port(t *testing.T, bridge string) Port {
	t.Helper()
	port := Port{Site: "karoo", Link: p.name, Bridge: bridge, MAC: "02:00:00:00:00:01", Addresses: at("192.0.2.99/24")}
	if p.fd <= 0 { // only the end of a link
		return port
	}
	p.do(t, func() error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		addresses, err := netlink.AddrList(link, netlink.FAMILY_V4)
		if err == nil && len(addresses) > 0 {
			port.MAC, port.Addresses = link.Attrs().HardwareAddr.String(), at(addresses[0].IPNet.String())
		}
		return err
	})
	return port
}

// setting sets a kernel setting of this network namespace.
func setting(t *testing.T, key, value string) {
	t.Helper()
	path := "/proc/sys/" + strings.ReplaceAll(key, ".", "/")
	if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", key, err))
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
