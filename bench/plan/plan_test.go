// Package plan measures planning a large site: 10,000 nodes on 200 hosts, half of them up.
//
//	go test -run '^$' -bench . -benchtime 5x ./bench/plan
//
// s/plan is the median time of one plan. cpu-s/plan is the processor time of all threads for one
// plan, including garbage collection. peak-MiB is the peak resident memory of the whole process,
// including the site and the states of the hosts. Goal: at most 1 s and 300 MiB.
package plan

import (
	"fmt"
	"net/netip"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"orrery/internal/engine/fake"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/place"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

const (
	nodes = 10_000
	hosts = 200
)

func BenchmarkUp(b *testing.B) {
	s := large()
	for _, c := range []struct {
		name string
		up   int
	}{{"new", 0}, {"half", nodes / 2}, {"nothing-to-do", nodes}} {
		seen := observed(s, c.up)
		debug.FreeOSMemory()
		b.Run(c.name, func(b *testing.B) {
			resetPeak(b)
			var took []time.Duration
			steps, before := 0, spent()
			for b.Loop() {
				begun := time.Now()
				p, err := plan.Up(s, seen, plan.Goal{})
				if err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(begun))
				steps = len(p.Steps)
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2].Seconds(), "s/plan")
			b.ReportMetric((spent()-before).Seconds()/float64(len(took)), "cpu-s/plan")
			b.ReportMetric(peak(b), "peak-MiB")
			b.ReportMetric(float64(steps), "steps")
			if steps == 0 != (c.up == nodes) {
				b.Fatalf("%d steps with %d nodes up", steps, c.up)
			}
		})
	}
}

// large returns a site with ten roles, templates that use peers, selectors and addresses, groups,
// volumes, limits and health checks.
func large() *site.Site {
	s := &site.Site{
		Name: "large", Images: []site.Image{{Name: "debian", Suite: "bookworm"}},
		Networks: []site.Network{
			{Name: "cam", Subnet: netip.MustParsePrefix("10.8.0.0/16"), Gateway: netip.MustParseAddr("10.8.0.1"), NAT: true},
			{Name: "data", Subnet: netip.MustParsePrefix("10.9.0.0/16")},
		},
		Volumes: []site.Volume{{Name: "archive", Remote: site.Remote{NFS: "nas:/archive"}, Shared: true}},
	}
	for i := range hosts {
		s.Hosts = append(s.Hosts, site.Host{
			Name: fmt.Sprintf("sv%03d", i), Cpus: 128, Memory: 512 << 30,
			Underlay: netip.AddrFrom4([4]byte{10, 7, 0, byte(i + 1)}),
		})
	}
	s.Roles = append(s.Roles,
		role("base", "ntp.conf", "server {{(index (peers \"time\") 0).Address}}\n"),
		role("time", "chrony.conf", "allow {{.Node.Name}}\n"),
		role("db", "pg_hba.conf", "{{range peers \"portal\"}}host all all {{.Address}}/32 md5\n{{end}}"),
		role("portal", "portal.json",
			"{{range select \"role=receptor and group=array0\"}}{{.Name}} {{address . \"data\"}}\n{{end}}"))
	for i := range 6 {
		s.Roles = append(s.Roles, role(fmt.Sprintf("kind%d", i), "device.json",
			"{{.Node.Name}} {{.Node.ID}} {{address .Node \"data\"}} {{with node \"db0\"}}{{.Address}}{{end}} {{range peers \"db\"}}{{.Address}} {{end}}\n"))
	}
	s.Roles = append(s.Roles, role("receptor", "receptor.json",
		"{{.Node.Name}} {{len (peers \"receptor\")}} {{.Env.PORT}} {{join \",\" .Node.Groups}}\n"))
	for i := range s.Roles {
		r := &s.Roles[i]
		if r.Name != "base" {
			r.NeedsRoles = []string{"base"}
		}
	}
	s.Roles[2].Volumes = []site.VolumeUse{{Name: "pgdata", Path: "/var/lib/postgresql", Owner: "postgres:postgres",
		Mode: 0o755}}
	s.Roles[3].NeedsHealthy = []string{"role=db"}
	s.Roles[10].NeedsHealthy = []string{"role=db", "role=time"}
	pins := site.Requirements{File: "requirements/site.txt",
		Text: strings.Repeat("package==1.2.3 --hash=sha256:0123456789abcdef\n", 60)}
	array := make([]site.Group, 10)
	for i := range nodes {
		n := site.Node{
			Name: fmt.Sprintf("node%05d", i), ID: i + 100, Image: "debian", Engine: "fake", Autostart: true, Requirements: pins,
			Roles: []string{"receptor", fmt.Sprintf("kind%d", i%6)}, Groups: []string{fmt.Sprintf("array%d", i%10), "system"},
			Limits: site.Limits{Cpus: 0.5, Memory: 512 << 20, Pids: 1000}, Vars: map[string]any{"dish": 13.5},
		}
		switch {
		case i < 4:
			n.Name, n.Roles = fmt.Sprint("db", i), []string{"db"}
		case i < 8:
			n.Name, n.Roles = fmt.Sprint("time", i), []string{"time"}
		case i < 20:
			n.Name, n.Roles = fmt.Sprint("portal", i), []string{"portal"}
		}
		if i%2 == 0 {
			n.Host = s.Hosts[i%hosts].Name
		}
		for _, on := range s.Networks {
			n.NICs = append(n.NICs, site.NIC{Network: on.Name, Address: site.AddressAfter(on.Subnet.Addr(), i+100)})
		}
		s.Nodes = append(s.Nodes, n)
		array[i%10].Name = n.Groups[0]
		array[i%10].Nodes = append(array[i%10].Nodes, n.Name)
	}
	s.Groups = array
	return s
}

func role(name, template, text string) site.Role {
	return site.Role{
		Name: name, Dir: "roles/" + name, Apt: []string{name + "-package"}, Pip: []string{"aiokatcp"},
		Services: []string{name + ".service"}, Env: map[string]string{"PORT": "7147"},
		Files: []site.File{
			{Path: "/usr/local/lib/" + name + ".py", Owner: "root:root", Mode: 0o644, Source: name + ".py",
				Content: []byte("print()\n")},
			{Path: "/etc/" + name + "/" + template, Owner: "root:root", Mode: 0o644, Template: template, Content: []byte(text)},
		},
		Steps: []site.Step{{Name: "seed", When: site.Boot, Script: []byte("true\n"),
			Interpreter: []string{"/bin/sh", "-eu"}}},
		Health: []site.HealthCheck{{TCP: 7147, Timeout: time.Second, Interval: time.Second, Within: time.Minute}},
	}
}

// observed returns the hosts with the first nodes of the site up on them.
func observed(s *site.Site, up int) []observe.Host {
	empty := make([]observe.Host, hosts)
	for i := range empty {
		empty[i] = host(s, i).Observe()
	}
	placed, err := place.Assign(s, empty)
	if err != nil {
		panic(err)
	}
	fresh, err := plan.Up(s, empty, plan.Goal{})
	if err != nil {
		panic(err)
	}
	maker := spec.NewBuilder(placed)
	maker.MTUs = map[string]int{}
	networks := map[string][]spec.Network{} // by host: each has its own links to the others
	for _, step := range fresh.Steps {
		if step.Network != nil {
			networks[step.Host] = append(networks[step.Host], *step.Network)
			maker.MTUs[step.Network.Name] = step.Network.MTU
		}
	}
	on := map[string][]*spec.Node{}
	layers := map[string]bool{}
	for i := range placed.Nodes[:up] {
		n, err := maker.Node(&placed.Nodes[i])
		if err != nil {
			panic(err)
		}
		on[placed.Nodes[i].Host] = append(on[placed.Nodes[i].Host], n)
		layers[n.Base], layers[n.Layer] = true, true
	}
	names := spec.NamesDigest(placed)
	seen := make([]observe.Host, hosts)
	for i := range seen {
		h := host(s, i)
		if up > 0 {
			h.Populate(networks[h.Name], layers, on[h.Name]...)
		}
		if seen[i] = h.Observe(); up > 0 {
			seen[i].Names = names
		}
	}
	return seen
}

// host returns a host without nodes, at the address by which the others reach it.
func host(s *site.Site, i int) *fake.Host {
	h := fake.NewHost(s.Name, s.Hosts[i].Name, 128, 512<<30)
	h.Addresses = []observe.Address{{Prefix: netip.PrefixFrom(s.Hosts[i].Underlay, 16).String(), Link: "enp0", MTU: 1500}}
	return h
}

// spent returns the processor time of this process. Other load on the machine does not increase it.
func spent() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// resetPeak makes the kernel reset the peak resident memory (proc(5), clear_refs).
func resetPeak(b *testing.B) {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Logf("the peak is that of the whole run: %v", err)
	}
}

// peak returns the peak resident memory in MiB.
func peak(b *testing.B) float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	kib, err := strconv.ParseFloat(strings.Fields(after)[0], 64)
	if err != nil {
		b.Fatal(err)
	}
	return kib / 1024
}
