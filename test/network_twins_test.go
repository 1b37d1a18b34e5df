package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestTwinsApart: production and two twins, one of which may reach the outside, all have the same
// addresses. No frame of a twin is ever on production's bridge.
func TestTwinsApart(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-apart", `
[network.lan]
subnet = "10.99.61.0/24"
gateway = "10.99.61.1"
nat = true
[network.data]
subnet = "10.99.62.0/24"
[image.debian]
suite = "bookworm"
[node."n{1..2}"]
id = 10
`, nil)
	outside(t, "it-outside", "10.99.63")
	s.do("up")
	s.Cleanup(func() { // before the site itself is destroyed
		for _, twin := range []string{"dev1", "dev2"} {
			_ = s.run("--force", "twin", "destroy", twin)
		}
	})
	s.do("twin", "create", s.dir, "dev1")
	s.do("twin", "create", s.dir, "dev2", "--nat")
	for _, twin := range []string{"dev1", "dev2"} {
		s.run("--twin", twin, "plan").want(0, "nothing to do")
		s.run("--twin", twin, "status").want(0)
	}
	s.run("plan").want(0)
	s.run("up").want(0, "nothing to do")

	frames := s.capture("it-apart", "lan")
	const asks = "ping -c 3 -i 0.1 -w 2 -q -p %s %s >/dev/null && echo yes || echo no"
	for _, c := range []struct {
		whose, mark         string // the mark is in the sent data
		lan, gateway, world string
	}{
		{"", "0b1e55ed", "yes", "yes", "yes"},
		{"dev1", "deadbeef", "yes", "no", "no"},
		{"dev2", "feedface", "yes", "yes", "yes"},
	} {
		for address, want := range map[string]string{
			"10.99.61.11": c.lan, "10.99.62.11": c.lan, "10.99.61.1": c.gateway, "10.99.63.2": c.world,
		} {
			args := []string{"shell", "n1", "--", "/bin/sh", "-c", fmt.Sprintf(asks, c.mark, address)}
			if c.whose != "" {
				args = append([]string{"--twin", c.whose}, args...)
			}
			if got := strings.TrimSpace(s.do(args...)); got != want {
				t.Errorf("%q reaches %s: %s, want %s", c.whose, address, got, want)
			}
		}
		s.do(append(twinArgs(c.whose), "shell", "n1", "--", "/bin/sh", "-c",
			"ping -b -c 2 -i 0.1 -w 1 -q -p "+c.mark+" 10.99.61.255 >/dev/null 2>&1; true")...)
	}
	seen := map[string]int{}
	for _, frame := range frames() {
		for _, mark := range []string{"\x0b\x1e\x55\xed", "\xde\xad\xbe\xef", "\xfe\xed\xfa\xce"} {
			if bytes.Contains(frame, []byte(mark+mark)) {
				seen[fmt.Sprintf("%x", mark)]++
			}
		}
	}
	if seen["0b1e55ed"] == 0 || len(seen) != 1 {
		t.Errorf("frames on the bridge of production, by what is in them: %v", seen)
	}
	// From the host, production answers, and the twins' routers let nothing in.
	if all := routers(s.name); len(all) != 1 {
		t.Errorf("the routers are %v", all)
	}
}

// routers returns the routers of a site's twins, by their marks.
func routers(site string) []string {
	out, _ := sh(`for n in $(ip netns list | grep -o '^orrery-[^ ]*'); do ip -n $n link show lo | grep -o 'orrery router .*'; done`)
	return slices.DeleteFunc(strings.Split(out, "\n"),
		func(line string) bool { return !strings.HasPrefix(line, "orrery router "+site+".") })
}

func twinArgs(twin string) []string {
	if twin == "" {
		return nil
	}
	return []string{"--twin", twin}
}

// outside adds a neighbour PREFIX.2 to this host, on a network that is of no site.
func outside(t *testing.T, name, prefix string) {
	t.Helper()
	script := `set -e
ip netns add NAME
ip link add NAME type veth peer name eth0 netns NAME
ip address add PREFIX.1/24 dev NAME
ip link set NAME up
ip -n NAME address add PREFIX.2/24 dev eth0
ip -n NAME link set eth0 up`
	clean := func() { _ = exec.Command("ip", "netns", "delete", name).Run() }
	clean()
	t.Cleanup(clean)
	script = strings.NewReplacer("NAME", name, "PREFIX", prefix).Replace(script)
	if out, err := exec.Command("/bin/sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// capture reads all frames on the bridge of a network until the returned function is called, which
// returns them.
func (s *site) capture(ofSite, network string) func() [][]byte {
	s.Helper()
	text, err := sh("ip -json link")
	if err != nil {
		s.Fatal(err)
	}
	var links []struct{ Ifname, Ifalias string }
	if err := json.Unmarshal([]byte(text), &links); err != nil {
		s.Fatal(err)
	}
	name := ""
	for _, l := range links {
		if strings.HasPrefix(l.Ifalias, "orrery "+ofSite+" "+network+" ") {
			name = l.Ifname
		}
	}
	bridge, err := net.InterfaceByName(name)
	if err != nil {
		s.Fatalf("bridge %q: %v", name, err)
	}
	const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all)
	if err != nil {
		s.Fatal(err)
	}
	for _, err := range []error{
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 1<<27), // frames are lost when the buffer is full
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: bridge.Index}),
		unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP,
			&unix.PacketMreq{Ifindex: int32(bridge.Index), Type: unix.PACKET_MR_PROMISC}),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 50_000}),
	} {
		if err != nil {
			s.Fatal(err)
		}
	}
	return func() (frames [][]byte) {
		defer unix.Close(fd)
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
			frame := make([]byte, 2048)
			n, _, err := unix.Recvfrom(fd, frame, 0)
			if err != nil {
				break
			}
			frames = append(frames, frame[:n])
		}
		if lost, err := unix.GetsockoptTpacketStats(fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err != nil ||
			lost.Drops > 0 {
			s.Errorf("of what was said on network %s of %s, %+v were lost: %v", network, ofSite, lost, err)
		}
		return frames
	}
}
