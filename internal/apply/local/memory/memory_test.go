package memory_test

import (
	"net/netip"
	"os"
	"strings"
	"testing"

	"orrery/internal/apply"
	"orrery/internal/apply/local/memory"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/release"
	"orrery/internal/plan/wayback"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/twin"
	"orrery/test/need"
)

func TestMain(m *testing.M) { os.Exit(need.InMemory(m)) }

type silent struct{}

func (silent) Begin(*plan.Step)          {}
func (silent) Detail(*plan.Step, string) {}
func (silent) Waits(*plan.Step, string)  {}
func (silent) End(*plan.Step, error)     {}

// A bench is a host in memory, with a site of two nodes that has a release. One node has a volume
// of its own and runs a service only while it is live. The other waits for it.
type bench struct {
	*testing.T
	host *memory.Host
	site *site.Site
}

func newBench(t *testing.T) *bench {
	t.Helper()
	s := &site.Site{
		Name: "karoo", Images: []site.Image{{Name: "debian", Suite: "bookworm"}}, Hosts: []site.Host{{Name: "here"}},
		Networks: []site.Network{{Name: "lan", Subnet: netip.MustParsePrefix("10.0.0.0/24"),
			Gateway: netip.MustParseAddr("10.0.0.1"), NAT: true, MTU: 1500}},
		Releases: []site.Release{{Number: 700, Requirements: site.Requirements{File: "pins", Text: "p==2\n"}}},
		Roles: []site.Role{
			{
				Name: "db", Dir: "roles/db", Pip: []string{"p"}, Services: []string{"db.service"}, Active: []string{"dump.timer"},
				Health: []site.HealthCheck{{TCP: 5432}},
				Volumes: []site.VolumeUse{{Name: "archive", Path: "/srv/archive", Owner: "root:root", Exclusive: true,
					Quarantine: site.CopySnapshot}},
				Files: []site.File{{Path: "/etc/db", Template: "t", Content: []byte("of {{ .Node.Name }}\n"),
					Owner: "root:root", Mode: 0o644}},
			},
			{Name: "web", Dir: "roles/web", Health: []site.HealthCheck{{TCP: 80}}, NeedsHealthy: []string{"role=db"}},
		},
	}
	for i, name := range []string{"db", "web"} {
		s.Nodes = append(s.Nodes, site.Node{
			Name: name, ID: 11 + i, Image: "debian", Engine: "fake", Host: "here", Autostart: true, Roles: []string{name},
			NICs: []site.NIC{{Network: "lan", Address: site.AddressAfter(s.Networks[0].Subnet.Addr(), 10+i)}},
		})
	}
	b := &bench{t, memory.New(t.TempDir(), "karoo", "here", 8, 1<<34), s}
	b.host.Releases = map[int]*site.Site{}
	for _, number := range []int{0, 700} {
		made, err := twin.Release(s, number)
		b.must(err)
		b.host.Releases[number] = made
	}
	return b
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) hosts() []observe.Host { return []observe.Host{b.host.Observe()} }

// run carries out a plan.
func (b *bench) run(p *plan.Plan, err error) *apply.Result {
	b.Helper()
	b.must(err)
	b.host.SetSite(b.site)
	return apply.Run(b.Context(), p, map[string]apply.Worker{"here": b.host}, silent{}, 3)
}

// do carries out a plan that must succeed, and removes what was kept for undoing it.
func (b *bench) do(p *plan.Plan, err error) {
	b.Helper()
	r := b.run(p, err)
	for _, f := range r.Failed {
		b.Fatalf("%s: %v", f.Step, f.Err)
	}
	b.must(b.host.Worker.Runs.DiscardUndo(b.Context(), r.Done))
}

func (b *bench) up() (*plan.Plan, error) {
	return plan.Up(b.site, b.hosts(), plan.Goal{Releases: b.host.Releases})
}

func (b *bench) stage() (*plan.Plan, error) {
	staged, err := twin.Quarantine(b.site, 700)
	b.must(err)
	p, of, err := release.Stage(staged, nil, b.hosts(), plan.Goal{})
	if err == nil {
		b.must(os.MkdirAll(b.host.Worker.Dirs.Release("karoo", 700), 0o700))
		b.host.Releases[700] = of
	}
	return p, err
}

func (b *bench) turn(to int) (*plan.Plan, error) {
	if of := *b.host.Releases[700]; of.Stage != 0 { // no longer in quarantine
		of.Stage = 0
		b.host.Releases[700] = &of
	}
	return release.Switch(b.site, b.hosts(),
		release.Goal{To: map[string]int{"db": to, "web": to}, Releases: b.host.Releases})
}

// live returns the release whose nodes all run, configured and proven, on the site's own networks,
// or -1 if there is none.
func (b *bench) live() int {
	b.Helper()
	of := map[int]int{}
	for _, n := range b.hosts()[0].Nodes {
		if !n.Staged && n.State == observe.Running && n.Configured && n.Proven != "" {
			of[n.Release]++
		}
	}
	for number, n := range of {
		if n == 2 {
			return number
		}
	}
	return -1
}

func (b *bench) wantLive(want int) {
	b.Helper()
	if got := b.live(); got != want {
		b.Errorf("live is %d, not %d", got, want)
	}
}

// TestThereAndBack: the worker brings a site up, stages a release beside it, switches to it and
// back, and takes everything down again.
func TestThereAndBack(t *testing.T) {
	b := newBench(t)
	b.do(b.up())
	b.wantLive(0)
	b.do(b.stage())
	b.wantLive(0)
	b.do(b.turn(700))
	b.wantLive(700)
	b.do(b.turn(0))
	b.wantLive(0)
	if p, err := b.up(); err != nil || !p.Empty() {
		t.Errorf("there is still to be done: %v, %v", p, err)
	}
	b.do(plan.Down(b.site, b.hosts(), plan.Goal{Volumes: true}), nil)
	left := b.host.Observe()
	if len(left.Nodes)+len(left.Networks)+len(left.Volumes) > 0 || b.host.Named() {
		t.Errorf("left is %+v", left)
	}
}

// TestTakenBack: whichever call of a switch or an up fails, undoing it from what is on disk leaves
// the former state.
func TestTakenBack(t *testing.T) {
	for _, fails := range []struct{ method, subject string }{
		{"move", ""}, {"Start", ""}, {"SetProgress", "db"}, {"Run", "db"}, {"Remount", ""}, {string(plan.WriteNames), ""},
		{string(plan.CommitSwitch), ""},
	} {
		b := newBench(t)
		b.do(b.up())
		b.do(b.stage())
		b.host.Fail(fails.method, fails.subject, 1, nil)
		p, err := b.turn(700)
		r := b.run(p, err)
		if len(r.Failed) > 0 {
			done := r.Done
			for _, f := range r.Failed {
				done = append(done, f.Step)
			}
			b.do(wayback.Undo(p, done), nil)
			b.wantLive(0)
		}
		b.host.Revive()
		b.must(b.host.Worker.Runs.Sweep(t.Context()))
		b.do(b.turn(700))
		b.wantLive(700)
		if t.Failed() {
			t.Fatalf("after %s of %q", fails.method, fails.subject)
		}
	}
}

// TestHeld: only one run at a time may change a site, and nodes are found by name.
func TestHeld(t *testing.T) {
	b := newBench(t)
	by := host.Holder{Who: "ada", Command: "orrery up"}
	letGo, err := b.host.Worker.Runs.Lock(t.Context(), by)
	b.must(err)
	if _, err := b.host.Worker.Runs.Lock(t.Context(), by); problem.ExitCode(err) != int(problem.Locked) ||
		!strings.Contains(err.Error(), "ada") {
		t.Errorf("%v", err)
	}
	letGo()
	letGo, err = b.host.Worker.Runs.Lock(t.Context(), by)
	b.must(err)
	letGo()
	b.do(b.up())
	nodes := b.hosts()[0].Nodes
	in, err := b.host.Worker.Nodes.Runner(&nodes[0].Node)
	b.must(err)
	b.must(in.Run(t.Context(), host.Command{Args: []string{"true"}}))
	nodes[0].Engine = "podman"
	if _, err := b.host.Worker.Nodes.Runner(&nodes[0].Node); problem.ExitCode(err) != int(problem.Unable) {
		t.Errorf("%v", err)
	}
	log, err := b.host.Worker.Nodes.Log(b.Context(), "db")
	b.must(err)
	b.must(log.Close())
}

// TestKilledAnywhere: if an up is killed at any operation, the next one completes it.
func TestKilledAnywhere(t *testing.T) {
	for n := 1; ; n++ {
		b := newBench(t)
		b.host.KillAt(n)
		r := b.run(b.up())
		b.host.Revive()
		b.must(b.host.Worker.Runs.Sweep(t.Context()))
		b.do(b.up())
		b.wantLive(0)
		if t.Failed() {
			t.Fatalf("killed at %d", n)
		}
		if r.OK() {
			return
		}
	}
}
