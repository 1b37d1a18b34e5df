package prove

import (
	"slices"
	"strings"
	"testing"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/diskio"
	"orrery/internal/site/spec"
)

// TestDeclared: every limit that a node declares is listed once, and nothing else.
func TestDeclared(t *testing.T) {
	n := &spec.Node{Name: "web"}
	n.Limits.Pids = site.DefaultPids
	if all := Declared(n); len(all) != 0 {
		t.Errorf("a node without limits has %v", all)
	}
	nic := spec.NIC{Network: "lan"}
	nic.Traffic.Rate = 1e9
	n.NICs = []spec.NIC{{Network: "free"}, nic}
	n.Limits = site.Limits{Cpus: 1.5, Memory: 1 << 30, Pids: 100, Disk: diskio.Limits{Read: 1e6, IOPS: 10}}
	var titles []string
	for _, l := range Declared(n) {
		titles = append(titles, l.Title())
	}
	want := []string{"net.lan.rate to the node", "net.lan.rate from the node", "disk.read", "disk.iops reads",
		"disk.iops writes", "cpus", "memory", "pids"}
	if !slices.Equal(titles, want) {
		t.Errorf("%q, want %q", titles, want)
	}
}

// TestCanLoad: what no load can prove safely has a reason.
func TestCanLoad(t *testing.T) {
	veth := spec.NIC{Network: "lan", Kind: string(site.Bridge), HostIfName: "or1"}
	own := spec.NIC{Network: "own", Kind: string(site.Exclusive)}
	grouped := &Target{Grouped: true, NICs: []spec.NIC{veth, own}, NetSpace: "/proc/1/ns/net"}
	machine := &Target{NICs: []spec.NIC{veth}}
	for _, c := range []struct {
		t    *Target
		l    Limit
		want string
	}{
		{grouped, Limit{Kind: ToNode, nic: veth}, ""},
		{grouped, Limit{Kind: FromNode, nic: veth}, ""},
		{machine, Limit{Kind: ToNode, nic: veth}, ""},
		{machine, Limit{Kind: FromNode, nic: veth}, "a virtual machine sends only"},
		{machine, Limit{Kind: ToNode, nic: own}, "not on network own"},
		{grouped, Limit{Kind: ToNode, nic: own}, "no end on the host"},
		{machine, Limit{Kind: Processors}, "out of the control groups"},
		{grouped, Limit{Kind: Memory}, "own programs"},
		{grouped, Limit{Kind: Processes}, "own programs"},
		{grouped, Limit{Kind: Read}, ""},
	} {
		if got := canLoad(c.t, c.l); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", c.l.Kind, got, c.want)
		}
	}
}

// TestLacksRoom: no load starts in a node that has little memory or few processes left.
func TestLacksRoom(t *testing.T) {
	n := &Target{Limits: site.Limits{Memory: 256 << 20, Pids: 200, Cpus: 2}}
	for _, c := range []struct {
		memory, pids int64
		want         string
	}{
		{100 << 20, 20, ""}, {-1, -1, ""}, {200 << 20, 20, "64 MiB"}, {0, 150, "66 threads"},
	} {
		if got := n.lacksRoom(host.Sample{Memory: c.memory, Pids: c.pids}); !strings.Contains(got, c.want) ||
			(got == "") != (c.want == "") {
			t.Errorf("%d bytes, %d processes: %q, want %q", c.memory, c.pids, got, c.want)
		}
	}
	if why := (&Target{}).lacksRoom(host.Sample{Memory: 1 << 40, Pids: 1 << 20}); why != "" {
		t.Errorf("without limits: %s", why)
	}
}

// TestNeighbour: the next node that can bear the load is taken, and never the node itself.
func TestNeighbour(t *testing.T) {
	a, b, c := &Target{Name: "a", Grouped: true}, &Target{Name: "b"}, &Target{Name: "c", Grouped: true}
	all := []*Target{a, b, c}
	l := Limit{Kind: Read}
	if n := Neighbour(all, a, l); n != c {
		t.Errorf("after a comes %v", n)
	}
	if n := Neighbour(all, c, l); n != a {
		t.Errorf("after c comes %v", n)
	}
	if n := Neighbour([]*Target{a, b}, a, l); n != nil {
		t.Errorf("after a comes %v", n)
	}
}

// TestMedian: the median of an even number is between the middle two.
func TestMedian(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{3, 1}, 2}, {[]float64{9, 1, 2}, 2}} {
		if got := median(c.of); got != c.want {
			t.Errorf("of %v: %v", c.of, got)
		}
	}
}
