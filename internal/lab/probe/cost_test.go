package probe

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/test/need"
)

// TestCost runs a probe at 1 Hz on a host with hundreds of interfaces and cgroups, and checks that
// it takes at most one per cent of a processor.
func TestCost(t *testing.T) {
	need.Integration(t)
	const interfaces, nodes = 400, 400
	root := t.TempDir()
	stand(t, root, crowdedNetwork(t, interfaces))
	cgroups := map[string]string{}
	for i, path := range crowdedCgroups(t, nodes) {
		cgroups[fmt.Sprintf("node%d", i)] = path
	}
	var seconds, counted atomic.Int32
	before := processTime(t)
	p, err := Start(t.Context(), Options{Root: root, Cgroups: cgroups, Deliver: func(s Second) {
		seconds.Add(1)
		counted.Store(max(counted.Load(), int32(len(s.Net))))
	}})
	if err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); seconds.Load() < 5 && time.Since(begun) < time.Minute; time.Sleep(50 * time.Millisecond) {
	}
	p.Stop()
	c, process := p.Cost(), processTime(t)-before
	t.Logf("%d interfaces, %d cgroups: %.3f %% of a processor by the probe's thread, %.3f %% by the whole process, %d seconds of %s",
		interfaces, nodes, 100*c.Share(), 100*process.Seconds()/c.Took.Seconds(), seconds.Load(),
		c.Took.Round(time.Millisecond))
	if c.Share() > 0.01 {
		t.Errorf("the probe takes %.2f %% of a processor", 100*c.Share())
	}
	// Interfaces send multicast packets when they come up, which is the traffic here.
	if counted.Load() == 0 || seconds.Load() < 5 {
		t.Errorf("%d seconds, in which at most %d interfaces moved", seconds.Load(), counted.Load())
	}
}

func processTime(t *testing.T) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// stand creates a root whose /proc and /sys are those of the machine, except for the network.
func stand(t *testing.T, root, network string) {
	t.Helper()
	links := map[string]string{"sys": "/sys", "proc/net": network, "proc/self": "/proc/self"}
	for _, name := range []string{"stat", "diskstats", "pressure", "vmstat", "loadavg"} {
		links["proc/"+name] = "/proc/" + name
	}
	if err := os.Mkdir(filepath.Join(root, "proc"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// crowdedNetwork creates a network namespace with many interfaces and returns its /proc/net. The
// namespace ends with its thread.
func crowdedNetwork(t *testing.T, n int) string {
	t.Helper()
	made, leave := make(chan error), make(chan struct{})
	var tid int
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		tid = unix.Gettid()
		err := unix.Unshare(unix.CLONE_NEWNET)
		for i := 0; err == nil && i < n; i += 2 {
			one := netlink.LinkAttrs{Name: fmt.Sprintf("crowd%d", i), Flags: net.FlagUp}
			err = netlink.LinkAdd(&netlink.Veth{LinkAttrs: one, PeerName: fmt.Sprintf("crowd%d", i+1)})
			if other, _ := netlink.LinkByName(fmt.Sprintf("crowd%d", i+1)); err == nil && other != nil {
				err = netlink.LinkSetUp(other)
			}
		}
		made <- err
		<-leave
	}()
	t.Cleanup(func() { close(leave) })
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	dir := fmt.Sprintf("/proc/self/task/%d/net", tid)
	text, err := os.ReadFile(dir + "/dev")
	if err != nil || strings.Count(string(text), "crowd") != n {
		t.Fatalf("%v\n%s", err, text)
	}
	return dir
}

// crowdedCgroups creates many cgroups in the hierarchy that accounts for processor time. It first
// removes those left behind by killed runs.
func crowdedCgroups(t *testing.T, n int) []string {
	t.Helper()
	const name = "orrery-probe-test"
	h := findHierarchy("/")
	at := h.account
	if at == "" {
		at = h.unified
	}
	if at == "" {
		t.Skip("no cgroups are mounted that account for processors")
	}
	at = filepath.Join(at, name)
	clean := func() {
		all, _ := os.ReadDir(at)
		for _, e := range all {
			if e.IsDir() {
				_ = os.Remove(filepath.Join(at, e.Name()))
			}
		}
		_ = os.Remove(at)
	}
	clean()
	t.Cleanup(clean)
	var paths []string
	for i := range n {
		path := filepath.Join(name, fmt.Sprint(i))
		if err := os.MkdirAll(filepath.Join(at, fmt.Sprint(i)), 0o755); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}
