package test

import (
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"orrery/internal/host/shape"
	model "orrery/internal/site"
)

// TestTrafficLimits: what a node sends and receives is limited in both directions, also after a change while it
// runs. What another program changes is found and mended, and nothing is left in the end.
func TestTrafficLimits(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-traffic", `
[network.lan]
subnet = "10.99.171.0/24"
[image.debian]
suite = "bookworm"
[node.bound]
id = 10
net.lan = { address = "10.99.171.10", rate = "40Mbit/s" }
[node.free]
id = 11
net.lan = "10.99.171.11"
`, nil)
	s.do("up")
	s.settled()
	before := s.init("bound")
	s.wantRate("free", "bound", "10.99.171.10", 40)
	s.wantRate("bound", "free", "10.99.171.11", 40)

	s.edit("site.toml", "40Mbit/s", "20Mbit/s")
	s.wantPlan("limit bound")
	s.run("plan", "--diff").want(10, "rate 40Mbit/s -> ", "rate 20Mbit/s")
	s.do("up")
	s.settled()
	s.wantRate("free", "bound", "10.99.171.10", 20)
	s.wantRate("bound", "free", "10.99.171.11", 20)

	// Another program changes one direction.
	ifb := s.ifbs(1)[0]
	if out, err := exec.Command("tc", "class", "change", "dev", ifb, "parent", "4f52:", "classid", "4f52:1", "htb", "rate",
		"900mbit").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.wantPlan("limit bound")
	s.do("up")
	s.settled()
	s.wantRate("bound", "free", "10.99.171.11", 20)

	// A node that ends on its own leaves nothing that stays.
	s.do("stop", "bound")
	s.do("start", "bound")
	s.ifbs(1)
	s.settled()

	s.edit("site.toml", `, rate = "20Mbit/s"`, "")
	s.edit("site.toml", `net.lan = "10.99.171.11"`, `net.lan = { address = "10.99.171.11", rate = "10Mbit/s" }`)
	s.wantPlan("limit bound", "limit free")
	free := s.init("free")
	s.do("up")
	s.settled()
	s.wantRate("bound", "free", "10.99.171.11", 10)
	if after := s.init("free"); after != free || before == "" {
		t.Errorf("init of free was %s and is %s", free, after)
	}
	s.do("down")
	s.ifbs(0)
}

// ifbs returns the interfaces that limit what comes from nodes of a site.
func (s *site) ifbs(want int) (names []string) {
	s.Helper()
	for _, node := range []string{"bound", "free"} {
		name := shape.IFBName(model.VethName(s.name, node, "lan"))
		if _, err := net.InterfaceByName(name); err == nil {
			names = append(names, name)
		}
	}
	if len(names) != want {
		s.Fatalf("%d interfaces %v instead of %d limit what nodes send", len(names), names, want)
	}
	return names
}

// wantRate checks how many Mbit/s pass from one node to another, headers included, while more is sent. The rate
// must never be exceeded. A busy machine may send less, but not for ever much less; bench/limits measures
// exactly.
func (s *site) wantRate(from, to, address string, want float64) {
	s.Helper()
	const tries = 10
	var got float64
	for range tries {
		sent := make(chan string)
		go func() { sent <- s.run("shell", from, "--", "python3", "-c", fmt.Sprintf(flood, address)).out }()
		out := s.run("shell", to, "--", "python3", "-c", countReceived).out
		<-sent
		got, _ = strconv.ParseFloat(strings.TrimSpace(out), 64)
		if got > want*1.03 {
			break
		}
		if got > want*0.6 {
			s.Logf("%s to %s: %.2f Mbit/s of %v", from, to, got, want)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.Errorf("from %s to %s pass %.2f Mbit/s instead of %v", from, to, got, want)
}

// flood sends frames of 1,514 bytes for three seconds.
const flood = `
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("%s", 9))
end = time.monotonic() + 3
while time.monotonic() < end:
    try: s.send(bytes(1472))
    except OSError: pass
`

// countReceived prints how many Mbit/s arrive in a second, once more than other traffic arrives.
const countReceived = `
import time
def count(): return int(open("/sys/class/net/eth0/statistics/rx_bytes").read())
first = count()
end = time.monotonic() + 60
while count() < first + 300000 and time.monotonic() < end: time.sleep(0.01)
at, n = time.monotonic(), count() # a pause between them must not show more than there is
time.sleep(1)
m, then = count(), time.monotonic()
print((m - n) * 8 / 1e6 / (then - at))
`
