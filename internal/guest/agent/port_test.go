package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/transport/rpc"
	"orrery/test/need"
)

// TestFound checks that ports of virtio are found by name among others, and that the first console
// of Xen is ignored.
func TestFound(t *testing.T) {
	sys := t.TempDir()
	if all := portDevices(sys); all != nil {
		t.Errorf("%v", all)
	}
	for path, name := range map[string]string{
		"class/virtio-ports/vport1p1/name": "orrery.0\n", "class/virtio-ports/vport1p2/name": "org.qemu.guest_agent.0\n",
		"bus/xen/devices/console-0/name": "", "bus/xen/devices/console-2/name": "", "bus/xen/devices/vif-0/name": "",
	} {
		path = filepath.Join(sys, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if all := portDevices(sys); !slices.Equal(all, []string{"vport1p1", "hvc2"}) {
		t.Errorf("%v", all)
	}
}

// TestConsole checks that any bytes pass a terminal unchanged, for any number of clients.
func TestConsole(t *testing.T) {
	near, far, err := pty.Open()
	need.Given(t, "pseudo-terminal", err)
	t.Cleanup(func() { near.Close() })
	p, err := openPort(far.Name())
	if err != nil {
		t.Fatal(err)
	}
	far.Close()
	t.Cleanup(func() { p.Close() })
	if !p.NoHangup() {
		t.Error("a terminal is said to tell when a client goes")
	}
	l := &line{t: t, port: p}
	l.serve(here)
	every := make([]byte, 64<<10)
	for i := range every {
		every[i] = byte(i)
	}
	for range 3 {
		c, err := rpc.NewClient(within(t), another(t, near))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := c.Runner("node").Run(within(t),
			host.Command{Args: []string{"cat"}, Stdin: bytes.NewReader(every), Stdout: &out}); err != nil ||
			!bytes.Equal(out.Bytes(), every) {
			t.Errorf("%v: %d bytes", err, out.Len())
		}
		c.Close()
	}
}

// another returns another file of the same terminal, as every client has.
func another(t *testing.T, f *os.File) *os.File {
	t.Helper()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), f.Name())
}
