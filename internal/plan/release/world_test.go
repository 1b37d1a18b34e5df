package release_test

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/apply"
	"orrery/internal/apply/local/memory"
	"orrery/internal/engine"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/release"
	"orrery/internal/plan/stand"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/site/twin"
	"orrery/test/need"
)

const host = "sv1"

func TestMain(m *testing.M) { need.RandomSites(m) }

// A world is a random site with releases, and an in-memory host that runs it.
type world struct {
	t     *rapid.T
	site  *site.Site
	host  *memory.Host
	ports map[int]map[string][]site.Publish // by release
	cold  bool                              // after a boot of the host: only live nodes have started again
}

func newWorld(t *rapid.T) *world {
	h := memory.New(need.Scratch(), "rapid", host, 64, 256<<30)
	h.AddEngine(site.KVM, observe.Capabilities{MoveNIC: true, Remount: rapid.Bool().Draw(t, "machines remount"),
		Keep: true})
	h.Interfaces = []string{"enp2", "enp3", "enp4"}
	w := &world{t: t, site: drawSite(t), host: h}
	w.ports = map[int]map[string][]site.Publish{700: drawPorts(t, w.site.Nodes), 701: drawPorts(t, w.site.Nodes)}
	for i, ports := range drawPorts(t, w.site.Nodes) {
		n, _ := w.site.Node(i)
		n.Publish = ports
	}
	h.Releases = map[int]*site.Site{}
	for _, number := range []int{0, 700, 701} {
		made, err := twin.Release(w.site, number)
		if err != nil {
			t.Fatal(err)
		}
		h.Releases[number] = w.withPorts(made, number)
	}
	return w
}

// drawPorts returns ports that nodes publish: none, or those of release 0, or others.
func drawPorts(t *rapid.T, nodes []site.Node) map[string][]site.Publish {
	all := map[string][]site.Publish{}
	for i := range nodes {
		if first := rapid.SampledFrom([]uint16{0, 8000, 9000}).Draw(t, "publishes"); first > 0 {
			all[nodes[i].Name] = []site.Publish{{Ports: site.PortRange{Proto: "tcp", First: first + uint16(i),
				Last: first + uint16(i)}, NodePort: 80}}
		}
	}
	return all
}

// withPorts returns the site of a release with the ports that its nodes publish. Each release
// declares its own.
func (w *world) withPorts(of *site.Site, number int) *site.Site {
	made := *of
	made.Nodes = slices.Clone(of.Nodes)
	for i := range made.Nodes {
		if number != 0 {
			made.Nodes[i].Publish = w.ports[number][made.Nodes[i].Name]
		}
	}
	return &made
}

// stagedTwice returns a world that is up without a release, with 700 and 701 staged, and the
// releases of its nodes.
func stagedTwice(t *rapid.T) (*world, map[string]int) {
	w := newWorld(t)
	at := map[string]int{}
	for _, n := range w.site.Nodes {
		at[n.Name] = 0
	}
	w.must(w.up())
	w.stage(700)
	w.stage(701)
	return w, at
}

// drawSite returns a site whose nodes have exclusive and shared volumes and live-only work, and
// wait for one another.
func drawSite(t *rapid.T) *site.Site {
	yes := func(what string) bool { return rapid.Bool().Draw(t, what) }
	s := &site.Site{
		Name: "rapid", Images: []site.Image{{Name: "debian", Suite: "bookworm"}}, Hosts: []site.Host{{Name: host}},
		Networks: []site.Network{
			{Name: "net0", Subnet: netip.MustParsePrefix("10.0.0.0/24"), Gateway: netip.MustParseAddr("10.0.0.1"), NAT: true,
				MTU: 1500},
			{Name: "net1", Subnet: netip.MustParsePrefix("10.0.1.0/24"), MTU: 1500},
		},
		Volumes: []site.Volume{{Name: "shared", Shared: true}},
		Releases: []site.Release{{Number: 700, Requirements: site.Requirements{File: "a", Text: "p==1\n"}},
			{Number: 701, Requirements: site.Requirements{File: "b", Text: "p==2\n"}}},
	}
	switch rapid.IntRange(0, 6).Draw(t, "kind") { // mostly a bridge
	case 1:
		s.Networks[1].Kind, s.Networks[1].Gateway = site.Routed, netip.MustParseAddr("10.0.1.1")
	case 2:
		s.Networks[1].Kind, s.Networks[1].Interface = site.Macvlan, "w0"
		s.VethPairs = []site.VethPair{{Name: "wire", Ends: [2]string{"w0", "w1"}}}
	case 3:
		s.Networks[1].Kind = site.Exclusive
		s.VethPairs = []site.VethPair{{Name: "wire", Ends: [2]string{"enp0", "enp1"}}}
	}
	for i := range 3 {
		name := fmt.Sprint("role", i)
		r := site.Role{Name: name, Dir: "roles/" + name, Pip: []string{"p"}}
		if yes("volume") {
			r.Volumes = append(r.Volumes, site.VolumeUse{Name: name, Path: "/srv/" + name, Owner: "root:root", Exclusive: true,
				Quarantine: site.CopySnapshot})
		}
		if yes("shared volume") {
			r.Volumes = append(r.Volumes, site.VolumeUse{Name: "shared", Path: "/all/" + name, Owner: "root:root",
				Exclusive: yes("for one release"), Quarantine: site.CopyEmpty})
		}
		if yes("health") {
			r.Health = []site.HealthCheck{{TCP: 1 + i}}
		}
		if yes("active") {
			r.Active = []string{name + ".timer"}
		}
		s.Roles = append(s.Roles, r)
	}
	for i := range 1 + rapid.IntRange(0, 4).Draw(t, "nodes") {
		n := site.Node{Name: fmt.Sprint("node", i), ID: 100 + i, Image: "debian", Engine: "fake", Host: host, Autostart: true}
		if yes("virtual") {
			n.Engine = site.KVM
			if yes("disk") {
				n.VM.Disk = site.QCow2
			}
		}
		// one each, so that there is no cycle
		n.Roles = []string{fmt.Sprint("role", rapid.IntRange(0, 2).Draw(t, "role"))}
		for j := range s.Networks {
			if j == 0 || yes("second network") {
				nic := site.NIC{Network: s.Networks[j].Name, Address: site.AddressAfter(s.Networks[j].Subnet.Addr(), 10+i)}
				if s.Networks[j].Kind == site.Exclusive {
					nic.Interface = fmt.Sprint("enp", i)
				}
				n.NICs = append(n.NICs, nic)
			}
		}
		s.Nodes = append(s.Nodes, n)
	}
	for i := 1; i < len(s.Roles); i++ {
		awaited := s.Roles[i-1].Name
		if yes("waits") && slices.ContainsFunc(s.Nodes, func(n site.Node) bool { return n.Roles[0] == awaited }) {
			s.Roles[i].NeedsHealthy = []string{"role=" + awaited}
		}
	}
	return s
}

func (w *world) observe() []observe.Host {
	return []observe.Host{w.host.Observe()}
}

type silent struct{}

func (silent) Begin(*plan.Step)          {}
func (silent) Detail(*plan.Step, string) {}
func (silent) Waits(*plan.Step, string)  {}
func (silent) End(*plan.Step, error)     {}

func (w *world) run(p *plan.Plan) *apply.Result {
	w.host.SetSite(w.site)
	return apply.Run(context.Background(), p, map[string]apply.Worker{host: w.host}, silent{},
		1+rapid.IntRange(0, 3).Draw(w.t, "parallel"))
}

func (w *world) must(p *plan.Plan, err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
	r := w.run(p)
	for _, f := range r.Failed {
		w.t.Fatalf("step %d %s: %v\n%s", f.Step.N, f.Step, f.Err, text(p))
	}
	if !r.OK() {
		w.t.Fatalf("%d steps were skipped", len(r.Skipped))
	}
}

func (w *world) up() (*plan.Plan, error) {
	return plan.Up(w.site, w.observe(), plan.Goal{Releases: w.host.Releases})
}

func (w *world) stage(number int) {
	w.t.Helper()
	if err := w.stageOf(w.site, number, nil, false); err != nil {
		w.t.Fatal(err)
	}
}

// stageOf stages nodes, or all for nil, of a release as a site directory declares it. The run may
// be interrupted.
func (w *world) stageOf(s *site.Site, number int, nodes map[string]bool, cut bool) error {
	w.t.Helper()
	staged, err := twin.Quarantine(s, number)
	if err != nil {
		w.t.Fatal(err)
	}
	staged = w.withPorts(staged, number)
	var previous *site.Site
	if slices.Contains(w.observe()[0].Releases.Staged, number) {
		kept := *w.host.Releases[number]
		kept.Stage = number
		previous = &kept
	}
	p, of, err := release.Stage(staged, previous, w.observe(), plan.Goal{Nodes: nodes})
	if err != nil || p.Empty() {
		return err
	}
	if err := os.MkdirAll(w.host.Worker.Dirs.Release("rapid", number), 0o700); err != nil {
		w.t.Fatal(err)
	}
	w.host.Releases[number] = of
	if cut {
		w.host.KillAt(1 + rapid.IntRange(0, 30).Draw(w.t, "killed at"))
		w.run(p)
		w.host.Revive()
	} else {
		w.must(p, nil)
	}
	live := *of
	live.Stage = 0
	w.host.Releases[number] = &live
	return nil
}

// reboot stops all nodes, as a host's boot does, and starts the live ones again.
func (w *world) reboot() {
	w.t.Helper()
	w.stop()
	w.must(w.up())
}

// stop stops all nodes.
func (w *world) stop() {
	w.t.Helper()
	for _, n := range w.observe()[0].Nodes {
		if err := w.host.Stop(context.Background(), engine.RefOf(&n.Node)); err != nil {
			w.t.Fatal(err)
		}
	}
	w.cold = true
}

// set draws nodes and returns their new releases.
func (w *world) set(number int) map[string]int {
	to := map[string]int{}
	for i, n := range w.site.Nodes {
		if i == 0 || rapid.Bool().Draw(w.t, "in the set") {
			to[n.Name] = number
		}
	}
	return to
}

func (w *world) turn(g release.Goal) (*plan.Plan, error) {
	g.Releases = w.host.Releases
	return release.Switch(w.site, w.observe(), g)
}

// intend records the goal of the switch, as the command does before it begins.
func (w *world) intend(to, end map[string]int) {
	r := w.observe()[0].Releases
	r.Switch = &observe.Switch{To: to, End: end}
	w.record(r)
}

// record writes the record of live releases and of the switch, as the command does beside the plan.
func (w *world) record(r observe.Releases) {
	w.t.Helper()
	if err := w.host.Worker.Releases.Write(w.t.Context(), r); err != nil {
		w.t.Fatal(err)
	}
}

// live returns, by node, the releases of the instances that are live in any respect.
func (w *world) live() map[string][]int {
	all := map[string][]int{}
	for _, n := range w.observe()[0].Nodes {
		onLive := slices.ContainsFunc(n.NICs, func(nic spec.NIC) bool {
			return nic.Bridge == site.BridgeName(n.Site, nic.Network)
		})
		if !n.Staged || onLive {
			all[n.Name] = append(all[n.Name], n.Release)
		}
	}
	return all
}

// want compares which releases are live with which should be, in the record and by what is there.
func (w *world) want(releases map[string]int) {
	w.t.Helper()
	for name, number := range releases {
		if got := w.live()[name]; len(got) != 1 || got[0] != number {
			w.t.Fatalf("node %s: live are releases %v, not %d alone", name, got, number)
		}
	}
	observed := w.observe()[0]
	moves := !slices.ContainsFunc(observed.Nodes, func(n observe.Node) bool {
		can := observed.Engines[n.Engine]
		return !can.MoveNIC || !can.Remount || n.VM.Disk != ""
	})
	for _, n := range observed.Nodes {
		shall := stand.AsRetired(n.Node)
		if n.Release == releases[n.Name] {
			shall = stand.AsLive(n.Node)
		}
		switch {
		case n.State != observe.Running && (!shall.Staged || moves && !w.cold && w.site.Networks[1].Kind == ""):
			// It is stopped when it is not live.
			w.t.Fatalf("node %s of release %d is %s", n.Name, n.Release, n.State)
		case !slices.Equal(n.NICs, shall.NICs) || n.Staged != shall.Staged:
			w.t.Fatalf("node %s of release %d is not where it shall be: %+v", n.Name, n.Release, n.NICs)
		case !slices.Equal(n.Mounts, shall.Mounts):
			w.t.Fatalf("node %s of release %d has %+v", n.Name, n.Release, n.Mounts)
		case n.Active && shall.Staged && n.State == observe.Running:
			w.t.Fatalf("node %s of release %d does what only a live node does", n.Name, n.Release)
		}
	}
	if p, err := w.up(); err != nil || !p.Empty() {
		w.t.Fatalf("up has something to do: %v\n%s", err, text(p))
	}
}

// now returns the nodes' state, without what may differ after a step was done and undone.
func (w *world) now() map[int]string {
	all := map[int]string{}
	for _, n := range w.observe()[0].Nodes {
		all[n.ID] = fmt.Sprint(n.State, n.Active, n.Staged, n.NICs, n.Mounts)
	}
	return all
}

func text(p *plan.Plan) string {
	var b strings.Builder
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "%d %s %v\n", s.N, s, s.Needs)
	}
	return b.String()
}

// merged returns releases with some of them replaced.
func merged(base, changes map[string]int) map[string]int {
	all := maps.Clone(base)
	maps.Copy(all, changes)
	return all
}
