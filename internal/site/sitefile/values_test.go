package sitefile

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/site"
	"orrery/internal/strict"
)

func TestDefaults(t *testing.T) {
	s := mustLoad(t, `
site.name = "x"
image.debian.suite = "bookworm"
network.lan = { subnet = "10.0.0.0/24", gateway = "10.0.0.1" }
network.data.subnet = "10.0.1.0/24"
defaults = { cpus = 2, memory = "1.5GiB", pids = 100 }
node."r{00..02}" = { id = 7, roles = ["receptor"] }
node.portal = { id = 1, roles = ["portal"], cpus = 0, net = { data = "10.0.1.77" } }
node."f{1..2}" = { id = 30, net = { lan = "10.0.0.99", data = "auto" }, swap = "0" }
group.g = { nodes = ["r*"], groups = ["h"], batch = 2 }
group.h = { nodes = ["portal"], batch = "25%" }
group.i = { nodes = ["portal"] }
`)
	var batches []site.Batch
	for _, g := range s.Groups {
		batches = append(batches, g.Batch)
	}
	if want := []site.Batch{{Nodes: 2}, {Percent: 25}, {}}; !slices.Equal(batches, want) {
		t.Errorf("batches %v, not %v", batches, want)
	}
	var lines []string
	for i := range s.Nodes {
		n := &s.Nodes[i]
		lines = append(lines, fmt.Sprintf("%d %s %s %s %s %v %v %v", n.ID, n.Name, n.Image, n.Host, n.Engine, n.Autostart,
			n.Groups, places(n)))
	}
	want := `1 portal debian local lxc true [g h i] [{data 10.0.1.77}]
7 r00 debian local lxc true [g] [{lan 10.0.0.7} {data 10.0.1.7}]
8 r01 debian local lxc true [g] [{lan 10.0.0.8} {data 10.0.1.8}]
9 r02 debian local lxc true [g] [{lan 10.0.0.9} {data 10.0.1.9}]
30 f1 debian local lxc true [] [{lan 10.0.0.99} {data 10.0.1.30}]
31 f2 debian local lxc true [] [{lan 10.0.0.100} {data 10.0.1.31}]`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	portal, r := s.Nodes[0].Limits, s.Nodes[1].Limits
	if portal.Cpus != 0 || r.Cpus != 2 || r.Memory != 3<<29 || r.Pids != 100 || r.Swap != nil {
		t.Errorf("%+v %+v", portal, r)
	}
	if swap := s.Nodes[4].Limits.Swap; swap == nil || *swap != 0 {
		t.Error("swap = 0 is not no limit")
	}
	if s.Networks[0].MTU != 0 || s.Networks[0].Name != "lan" {
		t.Errorf("%+v", s.Networks)
	}
	role, _ := s.Role("db")
	if v := role.Volumes[0]; v.Line != 1 || v.Owner != "root:root" || v.Mode != 0o755 {
		t.Errorf("%+v", v)
	}
}

// places returns the networks and addresses of a node.
func places(n *site.Node) []string {
	var all []string
	for _, nic := range n.NICs {
		all = append(all, fmt.Sprintf("{%s %s}", nic.Network, nic.Address))
	}
	return all
}

func TestKinds(t *testing.T) {
	const declared = `
site.name = "x"
image.debian.suite = "bookworm"
network.lan = { subnet = "10.0.0.0/24", gateway = "10.0.0.1", kind = "bridge" }
network.venet = { subnet = "10.0.1.0/24", gateway = "10.0.1.1", kind = "routed", nat = true }
network.wire = { subnet = "10.0.2.0/24", kind = "macvlan", interface = "w0" }
network.nic = { subnet = "10.0.3.0/24", gateway = "10.0.3.1", kind = "exclusive" }
vethpair.wire = { ends = ["w0", "w1"], mtu = 9000 }
node.a = { id = 1 }
node.b = { id = 2, interface.nic = "enp3s0f1" }
node.c = { id = 3, net.nic = "auto", interface.nic = "w1" }
`
	s := mustLoad(t, declared)
	if former := mustLoad(t, strings.Replace(declared, "vethpair.wire", "cable.wire", 1)); !reflect.DeepEqual(former, s) {
		t.Errorf("%+v", former)
	}
	if s.Networks[0].Kind != "" || s.Networks[1].Kind != site.Routed || s.Networks[2].Interface != "w0" ||
		s.Networks[3].Kind != site.Exclusive {
		t.Errorf("%+v", s.Networks)
	}
	if c := s.VethPairs; len(c) != 1 || c[0] != (site.VethPair{Name: "wire", Ends: [2]string{"w0", "w1"}, MTU: 9000}) {
		t.Errorf("%+v", c)
	}
	// A node that declares no networks is not on an exclusive network.
	if n := s.Nodes[0].NICs; len(n) != 3 || n[0].Interface != "" {
		t.Errorf("%+v", n)
	}
	if n := s.Nodes[1].NICs; len(n) != 4 || n[3].Interface != "enp3s0f1" || n[3].Address.String() != "10.0.3.2" {
		t.Errorf("%+v", n)
	}
	if n := s.Nodes[2].NICs; len(n) != 1 || n[0].Interface != "w1" {
		t.Errorf("%+v", n)
	}
}

func TestRoleDefaults(t *testing.T) {
	s, err := Load(siteDir(t, around("valid-role-x", `
[[step]]
when = "build"
script = "a"
[[step]]
when = "boot"
run = "setup.sh"
[[file]]
path = "/etc/a"
template = "sub/a.tmpl"
[[health]]
tcp = 5
[[secret]]
name = "known"
`)))
	if err != nil {
		t.Fatal(err)
	}
	r, _ := s.Role("x")
	build, boot := r.Steps[0], r.Steps[1]
	if build.Line != 2 || build.Name != "step 1" || build.Timeout != 10*time.Minute || build.User != "root" ||
		strings.Join(build.Interpreter, " ") != "/bin/sh -eu" {
		t.Errorf("%+v", build)
	}
	if boot.Line != 5 || boot.Name != "setup.sh" || boot.Timeout != 2*time.Minute || string(boot.Script) != "true\n" {
		t.Errorf("%+v", boot)
	}
	if f := r.Files[0]; f.Line != 8 || !f.Rendered() || f.Mode != 0o644 || string(f.Content) != "{{.Node.Name}}\n" {
		t.Errorf("%+v", f)
	}
	want := site.HealthCheck{Line: 11, TCP: 5, Timeout: 5 * time.Second, Interval: 500 * time.Millisecond,
		Within: time.Minute}
	if h := r.Health[0]; fmt.Sprint(h) != fmt.Sprint(want) {
		t.Errorf("%+v", h)
	}
	if x := r.Secrets[0]; x.Mode != 0o400 || x.Owner != "root:root" {
		t.Errorf("%+v", x)
	}
	if len(r.Beside) != 2 || r.Beside["sub/a.tmpl"] == nil {
		t.Errorf("%v", r.Beside)
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "512MiB": 512 << 20, "2GiB": 2 << 30, "1.5KiB": 1536,
		"1 TiB": 1 << 40, "77": 77} {
		var s strict.Size
		if p := s.Parse(text); p != nil || int64(s) != want {
			t.Errorf("%s: %d %v", text, s, p)
		}
	}
	for text, cure := range map[string]string{"512M": `write "512MiB"`, "2GB": `write "2GiB"`, "2 gb": "", "-1": "",
		"nan": "", "1e99": "", "0x10": "", "MiB": "", "": "", "99999999TiB": ""} {
		var s strict.Size
		if p := s.Parse(text); p == nil || cure != "" && p.Cure != cure {
			t.Errorf("%s: %d %v", text, s, p)
		}
	}
}

// TestDefaultPids: a node has a limit of processes unless it declares otherwise.
func TestDefaultPids(t *testing.T) {
	s := mustLoad(t, `
site.name = "x"
network = {}
image.debian.suite = "bookworm"
node.a = { id = 1 }
node.b = { id = 2, pids = 0 }
node.c = { id = 3, pids = 100 }
`)
	for i, want := range []int{site.DefaultPids, 0, 100} {
		if got := s.Nodes[i].Limits.Pids; got != want {
			t.Errorf("%s: %d, want %d", s.Nodes[i].Name, got, want)
		}
	}
}
