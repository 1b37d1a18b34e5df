package shape

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"orrery/internal/site/traffic"
	"orrery/test/need"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// port makes a port with a node's end, in a network namespace of its own.
func port(t *testing.T) netlink.Link {
	t.Helper()
	must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "orv0123456789"}, PeerName: "eth0"}))
	link, err := netlink.LinkByName("orv0123456789")
	must(t, err)
	return link
}

// inForce returns the limits that are in force.
func inForce(t *testing.T, want traffic.Limits) traffic.Limits {
	t.Helper()
	s, err := ReadState()
	must(t, err)
	got, err := s.InForce("orv0123456789", want)
	must(t, err)
	return got
}

// TestSet: limits are read back as they were set, also after changes, and are gone in the end.
func TestSet(t *testing.T) {
	if !need.Alone(t, "--net") {
		return
	}
	link := port(t)
	for _, l := range []traffic.Limits{
		{Rate: 200_000_000}, {Rate: 100_000_001}, {Rate: 100_000_000, Burst: 1 << 20}, {}, {Rate: traffic.MinRate},
		{Rate: 40_000_000_000}, {Rate: traffic.MaxRate, Burst: traffic.MaxBurst}, {Rate: 8000, Burst: traffic.MinBurst}, {},
	} {
		must(t, Set(link, l))
		must(t, Set(link, l)) // again
		if got := inForce(t, l); got != l {
			t.Errorf("%q reads back as %q", l, got)
		}
	}
	if out, _ := exec.Command("ip", "-o", "link").CombinedOutput(); strings.Contains(string(out), ifbPrefix) {
		t.Errorf("left over:\n%s", out)
	}
}

// TestOthersChange: what another program changes is seen, and mended by setting the limits again.
func TestOthersChange(t *testing.T) {
	if !need.Alone(t, "--net") {
		return
	}
	link, l := port(t), traffic.Limits{Rate: 200_000_000}
	const name, ifb = "orv0123456789", "ort0123456789"
	must(t, Set(link, l))
	for line, want := range map[string]string{
		"tc class change dev " + name + " parent 4f52: classid 4f52:1 htb rate 1gbit burst 25000 cburst 25000": "rate 1Gbit/s",
		"tc class change dev " + ifb + " parent 4f52: classid 4f52:1 htb rate 5mbit burst 25000 cburst 25000":  "rate 5Mbit/s",
		"tc class change dev " + ifb + " parent 4f52: classid 4f52:1 htb rate 200mbit ceil 1gbit":              "rate 1Gbit/s",
		"tc qdisc del dev " + name + " root":                                            "",
		"tc qdisc replace dev " + name + " root tbf rate 1mbit burst 10k latency 50ms":  "",
		"tc qdisc del dev " + name + " ingress":                                         "",
		"tc filter del dev " + name + " parent ffff:":                                   "",
		"tc qdisc del dev " + ifb + " root":                                             "",
		"ip link del " + ifb:                                                            "",
		"ip link set " + ifb + " down":                                                  "",
		"tc qdisc del dev " + name + " ingress && tc qdisc add dev " + name + " clsact": "",
	} {
		if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
			continue
		}
		got := inForce(t, l)
		if got == l || !strings.HasPrefix(got.String(), want) {
			t.Errorf("after %s: %q", line, got)
		}
		must(t, Set(link, l))
		if got := inForce(t, l); got != l {
			t.Errorf("%s is not mended: %q", line, got)
		}
	}
}

// TestLeavesOthers: without limits, what another program has made stays.
func TestLeavesOthers(t *testing.T) {
	if !need.Alone(t, "--net") {
		return
	}
	link := port(t)
	if out, err := exec.Command("sh", "-c", "tc qdisc add dev orv0123456789 root tbf rate 1mbit burst 10k latency 50ms && "+
		"tc qdisc add dev orv0123456789 ingress").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	must(t, Set(link, traffic.Limits{}))
	if got := inForce(t, traffic.Limits{}); got != (traffic.Limits{}) {
		t.Errorf("it has %q", got)
	}
	out, _ := exec.Command("tc", "qdisc", "show", "dev", "orv0123456789").CombinedOutput()
	if !strings.Contains(string(out), "tbf") || !strings.Contains(string(out), "ingress") {
		t.Errorf("it removed what was there:\n%s", out)
	}
}

// TestSweep removes what a node left that has ended on its own, and nothing else.
func TestSweep(t *testing.T) {
	if !need.Alone(t, "--net") {
		return
	}
	link := port(t)
	must(t, Set(link, traffic.Limits{Rate: 1_000_000}))
	sweep := func() {
		links, err := netlink.LinkList()
		must(t, err)
		must(t, Sweep(links))
	}
	if sweep(); inForce(t, traffic.Limits{Rate: 1_000_000}).Rate != 1_000_000 {
		t.Error("it removed limits that are in force")
	}
	must(t, netlink.LinkDel(link))
	must(t, netlink.LinkAdd(&netlink.Ifb{LinkAttrs: netlink.LinkAttrs{Name: "ifb0"}}))
	sweep()
	if ifb, err := findIFB("orv0123456789"); err != nil || ifb != nil {
		t.Errorf("%v %v", ifb, err)
	}
	if _, err := netlink.LinkByName("ifb0"); err != nil {
		t.Error(err)
	}
}

// TestDelay is skipped on kernels without netem, whose error must say so.
func TestDelay(t *testing.T) {
	if !need.Alone(t, "--net") {
		return
	}
	link := port(t)
	for _, l := range []traffic.Limits{
		{Latency: 5 * time.Millisecond},
		{Rate: 100_000_000, Latency: 5 * time.Millisecond, Jitter: time.Millisecond, Loss: 1000},
		{Loss: 1}, {Loss: 1_000_000}, {Rate: 100_000_000}, {Latency: traffic.MaxLatency},
	} {
		err := Set(link, l)
		if err != nil && strings.Contains(err.Error(), "the kernel has no queues of kind netem (modprobe sch_netem)") {
			t.Skip(err)
		}
		must(t, err)
		if got := inForce(t, l); got != l {
			t.Errorf("%q reads back as %q", l, got)
		}
	}
}
