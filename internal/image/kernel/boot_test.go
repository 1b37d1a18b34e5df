package kernel

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"orrery/internal/guest/boot"
	"orrery/internal/host"
	"orrery/internal/host/qemu"
	"orrery/internal/image"
	"orrery/internal/image/rootfs"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/transport/rpc"
	"orrery/test/need"
)

// said is the output on the console of a machine.
type said struct {
	lock sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.text.String()
}

// A trial is a machine that a test boots from real layers, in emulation.
type trial struct {
	dir     string
	console said
	keys    io.WriteCloser // input of the console
	config  boot.Config
	devices []string
	done    chan error
}

// machine boots a machine whose root is the overlay of Debian's base and its kernel, with its own
// private layer. The machine ends with the test, however the test ends.
func machine(t *testing.T, m *trial) {
	t.Helper()
	need.Integration(t)
	program, err := qemu.System()
	if err != nil {
		t.Fatal(err)
	}
	daemon, err := qemu.Virtiofsd()
	if err != nil {
		t.Fatal(err)
	}
	m.dir, m.done = t.TempDir(), make(chan error, 1)
	guest := filepath.Join(m.dir, "orrery-guest")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid=", "-o", guest,
		"orrery/cmd/orrery-guest")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	store := image.Open(need.State())
	base := spec.Base(site.Mirror{}, site.Image{Name: "debian", Suite: "bookworm"})
	layer := spec.KernelLayer(site.Mirror{}, base)
	if err := store.BuildBase(t.Context(), base, site.Mirror{}, func(string) {}); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	err = store.BuildLayer(t.Context(), layer, site.Mirror{}, func(ctx context.Context, in host.Runner) error {
		return store.Cache.FillKernel(ctx, in, layer, &log)
	}, func(string) {})
	if err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	from, err := Files(t.Context(), store, layer.Digest, guest)
	if err != nil {
		t.Fatal(err)
	}
	overlay := &rootfs.Overlay{
		Lower: []string{store.Tree(layer.Digest), store.Tree(base.Digest)},
		Upper: filepath.Join(m.dir, "upper"), Work: filepath.Join(m.dir, "work"), Target: filepath.Join(m.dir, "root"),
	}
	for _, dir := range []string{overlay.Upper, overlay.Work, overlay.Target} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	socket := filepath.Join(m.dir, "share.sock")
	share := exec.Command(daemon, "--socket-path="+socket, "-o", "source="+overlay.Target, "-o", "cache=auto", "-o",
		"xattr", "-o", "posix_acl", "--thread-pool-size=0")
	if version, _ := exec.Command(daemon, "--version").Output(); !bytes.HasPrefix(version, []byte("virtiofsd version ")) {
		// this is the virtiofsd written in Rust
		share = exec.Command(daemon, "--socket-path="+socket, "--shared-dir="+overlay.Target, "--cache=auto",
			"--sandbox=none", "--xattr", "--posix-acl", "--thread-pool-size=0")
	}
	if err := overlay.StartCommand(share); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { share.Process.Kill(); share.Wait() }) //nolint:errcheck // it has ended with QEMU
	for range 500 {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	word, err := m.config.Encode()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{
		"-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-machine", "q35,memory-backend=mem", "-accel",
		"tcg", "-cpu", "qemu64,cx16=off",
		"-m", "256", "-object", "memory-backend-memfd,id=mem,size=256M,share=on", "-kernel", from.Kernel, "-initrd",
		from.Initramfs,
		"-append", "console=ttyS0 quiet panic=-1 no_timer_check net.ifnames=0 systemd.getty_auto=no systemd.mask=getty@tty1.service " + word,
		"-chardev", "socket,id=share,path=" + socket, "-device", "vhost-user-fs-pci,chardev=share,tag=" + boot.RootTag,
		"-device", "virtio-serial-pci", "-serial", "stdio",
	}
	for port := range rpc.Ports {
		args = append(args, "-chardev", fmt.Sprintf("socket,id=a%d,path=%s,server=on,wait=off", port,
			filepath.Join(m.dir, rpc.SocketName(port))),
			"-device", fmt.Sprintf("virtserialport,chardev=a%d,name=%s.%d", port, rpc.PortName, port))
	}
	run := exec.Command(program, append(args, m.devices...)...)
	run.Stdout, run.Stderr = &m.console, &m.console
	if m.keys, err = run.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	run.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
	started := make(chan error)
	host.GoOnLockedThread(func() { // the signal is sent at the end of the thread
		err := run.Start()
		started <- err
		if err == nil {
			m.done <- run.Wait()
		}
	})
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Process.Kill() }) //nolint:errcheck // it has ended, if all went well
}

// ended waits until a machine has ended.
func (m *trial) ended(t *testing.T) {
	t.Helper()
	select {
	case <-m.done:
	case <-time.After(15 * time.Minute):
		t.Fatalf("the machine has not ended:\n%s", m.console.String())
	}
}

// says waits until the console of a machine has printed some words.
func (m *trial) says(t *testing.T, words string) {
	t.Helper()
	for begun := time.Now(); !strings.Contains(m.console.String(), words); time.Sleep(50 * time.Millisecond) {
		if time.Since(begun) > 5*time.Minute {
			t.Fatalf("%q is not said on the console:\n%s", words, m.console.String())
		}
	}
}

// TestBoot boots a machine in emulation. It has its names and addresses, systemd starts, and it
// powers off cleanly, even if that is requested while it is still booting.
func TestBoot(t *testing.T) {
	early := &trial{config: boot.Config{Root: boot.VirtioFS}}
	late := &trial{
		config: boot.Config{Root: boot.VirtioFS, Hostname: "receptor1", NICs: []boot.NIC{
			{MAC: "52:54:00:00:00:02", Name: "eth0", Address: netip.MustParsePrefix("10.0.2.15/24"), Gateway: "10.0.2.2",
				MTU: 1400},
			{MAC: "52:54:00:00:00:01", Name: "eth1", Address: netip.MustParsePrefix("10.1.0.7/16")},
		}},
		devices: []string{ // in reverse: the kernel would name them in this order
			"-netdev", "hubport,hubid=1,id=n1", "-device", "virtio-net-pci,netdev=n1,mac=52:54:00:00:00:01,romfile=",
			"-netdev", "hubport,hubid=2,id=n2", "-device", "virtio-net-pci,netdev=n2,mac=52:54:00:00:00:02,romfile=",
		},
	}
	begun := time.Now()
	machine(t, late)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	c, err := rpc.DialAgent(ctx, late.dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, late.console.String())
	}
	t.Logf("the agent answers after %.1f s", time.Since(begun).Seconds())
	in := c.Runner("receptor1")
	if err := c.Await(ctx, "/run/systemd/private"); err != nil {
		t.Fatal(err)
	}
	// this fails with "degraded", because sshd has no keys here
	state, _ := host.Output(ctx, in, host.Command{Args: []string{"systemctl", "is-system-running", "--wait"}}, 1<<10)
	t.Logf("the system is %q after %.1f s", bytes.TrimSpace(state), time.Since(begun).Seconds())
	out, err := host.Output(ctx, in,
		host.Command{Args: []string{"sh", "-c",
			"uname -n; ip -o address; ip route; cat /sys/class/net/eth0/mtu; ps -o args= 1; modprobe -n loop && umount --version; ls / | tr '\\n' ' '"}},
		1<<20)
	if err != nil {
		t.Fatalf("%v\n%s", err, late.console.String())
	}
	for _, want := range []string{
		"receptor1\n", "lo    inet 127.0.0.1/8", "eth0    inet 10.0.2.15/24", "eth1    inet 10.1.0.7/16",
		"default via 10.0.2.2 dev eth0", "\n1400\n", "/sbin/init", "umount from util-linux",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	late.says(t, "Press Enter for a shell on receptor1.")
	if _, err := io.WriteString(late.keys, "\recho $((6*7))-$(id -un)-$(tty)\r"); err != nil {
		t.Fatal(err)
	}
	late.says(t, "42-root-/dev/ttyS0")
	if err := c.PowerOff(ctx); err != nil {
		t.Fatal(err)
	}
	late.ended(t)
	t.Logf("it has powered off after %.1f s", time.Since(begun).Seconds())

	machine(t, early)
	if c, err = rpc.DialAgent(ctx, early.dir); err != nil {
		t.Fatal(err)
	}
	if err := c.PowerOff(ctx); err != nil {
		t.Fatal(err)
	}
	early.ended(t)
}

// TestNoBoot: a machine that cannot boot says why on its console, in one line, and powers off.
func TestNoBoot(t *testing.T) {
	m := &trial{config: boot.Config{Root: boot.VirtioFS, NICs: []boot.NIC{{MAC: "52:54:00:00:00:09", Name: "eth0"}}}}
	machine(t, m)
	m.ended(t)
	if text := m.console.String(); !strings.Contains(text,
		"orrery-guest: network interface eth0 (52:54:00:00:00:09): the machine has none") || strings.Contains(text, "panic") {
		t.Error(text)
	}
}
