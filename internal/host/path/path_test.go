package path

import (
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/test/need"
)

// between is a script that creates a host whose path to another one has a link with a smaller MTU,
// which drops larger packets without notice.
const between = `set -e
ip link set lo up
for n in far mid; do unshare -n sleep 60 >/dev/null 2>&1 & eval $n=$!; done
while [ "$(readlink /proc/$far/ns/net)" = "$(readlink /proc/self/ns/net)" ] || [ "$(readlink /proc/$mid/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
ip link add near type veth peer name left netns $mid
nsenter -t $mid -n ip link add right type veth peer name far netns $far
ip addr add 10.8.1.1/24 dev near; ip addr add fd00::1/64 dev near nodad; ip link set near up
nsenter -t $far -n sh -c 'ip addr add 10.8.1.2/24 dev far; ip addr add fd00::2/64 dev far nodad; ip link set far up'
nsenter -t $mid -n sh -c 'ip link add name switch type bridge; for p in left right; do ip link set $p master switch up; done; ip link set switch up; ip link set right mtu 1400'
`

const inside = "ORRERY_TEST_BETWEEN"

// TestTry checks that Probe finds the largest packet that passes a link with a smaller MTU than at
// both ends, and returns 0 without an answer.
func TestTry(t *testing.T) {
	if os.Getenv(inside) == "" {
		need.Integration(t)
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestTry$", "-test.v")
		cmd.Env = append(os.Environ(), inside+"=yes")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID,
			Pdeathsig: syscall.SIGKILL}
		runtime.LockOSThread() // Pdeathsig is sent when the thread ends
		defer runtime.UnlockOSThread()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	for _, do := range []error{unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("proc", "/proc", "proc", 0, "")} {
		if do != nil {
			t.Fatal(do)
		}
	}
	if out, err := exec.Command("sh", "-c", between).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	at := netip.MustParseAddr
	ways := []Route{
		{at("10.8.1.1"), at("10.8.1.2"), 1500}, {at("10.8.1.1"), at("10.8.1.2"), 1300},
		{at("10.8.1.1"), at("10.8.1.1"), 1500}, {at("10.8.1.1"), at("10.8.1.3"), 1500}, {at("10.8.1.1"), at("fd00::2"), 1500},
		{at("10.8.1.77"), at("10.8.1.2"), 1500}, {at("10.8.1.1"), at("10.8.1.2"), 9000},
		{at("10.8.1.1"), at("10.8.1.2"), -1}, {at("10.8.1.1"), at("10.8.1.2"), 1 << 20}, {Size: 1500},
	}
	began := time.Now()
	got := Probe(t.Context(), ways)
	t.Logf("%v after %s", got, time.Since(began).Round(time.Millisecond))
	// A bridge allows packets larger by a VLAN tag.
	small := func(n int) bool { return n >= 1400 && n <= 1404 }
	if !small(got[0]) || !small(got[6]) || !slices.Equal(got[1:6], []int{1300, 1500, 0, 0, 0}) ||
		!slices.Equal(got[7:], []int{0, 0, 0}) {
		t.Errorf("of %v arrive %v", ways, got)
	}
	if got := Probe(t.Context(), []Route{{at("fd00::1"), at("fd00::2"), 1500}}); !small(got[0]) {
		t.Errorf("by IPv6, packets of %d bytes arrive", got)
	}
}

// TestChecksum checks the example of RFC 1071.
func TestChecksum(t *testing.T) {
	if sum := checksum([]byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}); sum != ^uint16(0xddf2) {
		t.Errorf("it is %x", sum)
	}
	if checksum([]byte{1}) != ^uint16(0x100) {
		t.Error("of an odd number of bytes it is another")
	}
}
