package plan_test

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"orrery/internal/apply"
	"orrery/internal/apply/local/memory"
	"orrery/internal/engine/fake"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/place"
	"orrery/internal/plan/rotation"
	"orrery/internal/secret"
	"orrery/internal/site"
	"orrery/internal/site/secretspec"
	"orrery/internal/site/spec"
	"orrery/test/need"
)

// A failer is what tests need of testing.T and rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func TestMain(m *testing.M) { need.RandomSites(m) }

// A fleet is the hosts of a site, in memory.
type fleet struct {
	hosts  []*memory.Host
	faults *fake.Faults // of all hosts together
}

func newFleet(names ...string) *fleet {
	f := &fleet{faults: &fake.Faults{}}
	for i, name := range names {
		h := memory.New(need.Scratch(), "rapid", name, 64, 256<<30)
		h.AddEngine(site.KVM, observe.Capabilities{MoveNIC: true, Keep: true, Accel: observe.TCG})
		h.Faults, h.Interfaces, h.Cards = f.faults, []string{"enp1", "enp2"}, cardsOf(64)
		h.Addresses = []observe.Address{{Prefix: fmt.Sprintf("10.8.1.%d/24", i+1), Link: "enp0", MTU: 1500}}
		f.hosts = append(f.hosts, h)
	}
	return f
}

func (f *fleet) observe() []observe.Host {
	var all []observe.Host
	for _, h := range f.hosts {
		all = append(all, h.Observe())
	}
	return all
}

// ended records the order in which steps began and ended.
type ended struct {
	sync.Mutex
	began, done []*plan.Step
}

func (e *ended) Begin(s *plan.Step) {
	e.Lock()
	defer e.Unlock()
	e.began = append(e.began, s)
}
func (e *ended) Detail(*plan.Step, string) {}
func (e *ended) Waits(*plan.Step, string)  {}
func (e *ended) End(s *plan.Step, err error) {
	e.Lock()
	defer e.Unlock()
	if err == nil {
		e.done = append(e.done, s)
	}
}

func (f *fleet) run(p *plan.Plan, parallel int) *apply.Result {
	workers := map[string]apply.Worker{}
	for _, h := range f.hosts {
		workers[h.Name] = h
	}
	result := apply.Run(context.Background(), p, workers, &ended{}, parallel)
	return result
}

// settle removes the undo data of a run that has succeeded.
func (f *fleet) settle(t failer, p *plan.Plan) {
	t.Helper()
	for _, h := range f.hosts {
		mine := slices.DeleteFunc(slices.Clone(p.Steps), func(s *plan.Step) bool { return s.Host != h.Name })
		if err := h.Worker.Runs.DiscardUndo(context.Background(), mine); err != nil {
			t.Fatalf("%v", err)
		}
	}
}

func (f *fleet) up(t failer, s *site.Site, goal plan.Goal) *plan.Plan {
	t.Helper()
	for _, h := range f.hosts {
		if err := h.Worker.Runs.Sweep(context.Background()); err != nil {
			t.Fatalf("%v", err)
		}
		h.SetSite(s)
	}
	p, err := plan.Up(s, f.observe(), goal)
	if err != nil {
		t.Fatalf("plan.Up: %v", err)
	}
	return p
}

// rotate makes all hosts store the next generation of the secret of random sites.
func (f *fleet) rotate(t failer, s *site.Site) {
	t.Helper()
	raised := map[string]bool{}
	for _, stored := range secretspec.Names(s, &s.Secrets[0]) {
		raised[stored] = true
	}
	next, err := rotation.Observed(f.observe(), raised)
	if err != nil {
		t.Fatalf("rotation.Observed: %v", err)
	}
	for _, h := range f.hosts {
		for stored := range raised {
			s := secret.Stored{Value: "x", Generation: next.Of(stored)}
			if err := h.Worker.Host.Secrets.Replace(context.Background(), stored, s); err != nil {
				t.Fatalf("%v", err)
			}
		}
	}
}

// reach brings a site up and fails unless all steps succeed.
func (f *fleet) reach(t failer, s *site.Site) *plan.Plan {
	t.Helper()
	p := f.up(t, s, plan.Goal{})
	result := f.run(p, 4)
	for _, failed := range result.Failed {
		t.Fatalf("step %d %s: %v\n%s", failed.Step.N, failed.Step, failed.Err, text(p))
	}
	if !result.OK() {
		t.Fatalf("%d steps were skipped", len(result.Skipped))
	}
	f.settle(t, p)
	return p
}

// wantReached compares what is there with what is declared, in all that a spec says.
func (f *fleet) wantReached(t failer, s *site.Site) {
	t.Helper()
	placed, err := place.Assign(s, f.observe())
	if err != nil {
		t.Fatalf("plan.Place: %v", err)
	}
	maker := spec.NewBuilder(placed)
	generations, err := rotation.Observed(f.observe(), nil)
	if err != nil {
		t.Fatalf("rotation.Observed: %v", err)
	}
	for _, h := range f.observe() {
		var networks []spec.Network
		count := 0
		used, ends := map[string]bool{}, map[string]bool{}
		for i := range placed.Nodes {
			n := &placed.Nodes[i]
			if n.Host != h.Name {
				continue
			}
			count++
			for _, nic := range n.NICs {
				used[nic.Network] = true
				ends[nic.Interface] = true
				if on, _ := placed.Network(nic.Network); on != nil {
					ends[on.Interface] = true
				}
			}
			wanted, err := maker.Node(n)
			if err != nil {
				t.Fatalf("%v", err)
			}
			wanted.Config.Secrets = generations.OfNode(placed, n)
			current, ok := h.Node(n.Name)
			if !ok {
				t.Fatalf("node %s is not on host %s", n.Name, h.Name)
			}
			if !wanted.Autostart && current.State == observe.Stopped {
				current.Config = wanted.Config // it is updated when the node runs
			}
			if wanted.Config.Health == "" {
				current.Config.Health = "" // a removed health check needs no step
			}
			if got, want := spec.Digest(current.Node), spec.Digest(wanted); got != want {
				t.Fatalf("node %s is\n%+v, not\n%+v", n.Name, current.Node, *wanted)
			}
			if !current.Configured || wanted.Autostart && current.State != observe.Running {
				t.Fatalf("node %s is %s, configured %t", n.Name, current.State, current.Configured)
			}
			if current.State == observe.Running && wanted.Config.Health != "" && current.Proven != wanted.Config.Health {
				t.Fatalf("node %s is not proven healthy", n.Name)
			}
		}
		if count != len(h.Nodes) {
			t.Fatalf("host %s has %d nodes, not %d", h.Name, len(h.Nodes), count)
		}
		for _, n := range maker.Networks() {
			if used[n.Name] || n.Kind == spec.VethPair && (ends[n.Ends[0]] || ends[n.Ends[1]]) {
				n.VXLAN = joint(placed, f, n, h.Name)
				networks = append(networks, n)
			}
		}
		slices.SortFunc(networks, func(a, b spec.Network) int { return cmp.Compare(a.Name, b.Name) })
		for i := range networks {
			j := slices.IndexFunc(h.Networks, func(n observe.Network) bool { return n.Name == networks[i].Name })
			if j >= 0 && plan.IsPassedThrough(&h, &h.Networks[j], &networks[i]) {
				h.Networks[j].Drift = nil
			}
		}
		same := func(existing observe.Network, wanted spec.Network) bool { return existing.Matches(&wanted) }
		if !slices.EqualFunc(h.Networks, networks, same) {
			t.Fatalf("host %s has the networks\n%+v, not\n%+v", h.Name, h.Networks, networks)
		}
		if want := spec.NamesDigest(placed); count > 0 && h.Names != want || count == 0 && h.Names != "" {
			t.Fatalf("host %s has other names", h.Name)
		}
	}
}

func text(p *plan.Plan) string {
	var b []byte
	for _, s := range p.Steps {
		b = append(b, s.Host+": "+s.String()+"\n"...)
	}
	return string(b)
}

// joint returns how a network's bridge on a host of the fleet is joined with other hosts.
func joint(placed *site.Site, f *fleet, n spec.Network, on string) spec.VXLAN {
	joint := spec.VXLAN{ID: site.VNI(n.Site, n.Name)}
	var peers []spec.Peer
	for i, h := range f.hosts {
		p := spec.Peer{Address: netip.AddrFrom4([4]byte{10, 8, 1, byte(i + 1)})}
		for _, node := range placed.Nodes {
			if node.Host == h.Name && slices.Contains(node.Networks(), n.Name) {
				p.MACs = append(p.MACs, site.MAC(placed.Name, node.Name, n.Name))
			}
		}
		switch {
		case h.Name == on:
			joint.Local = p.Address.String()
		case len(p.MACs) > 0:
			peers = append(peers, p)
		}
	}
	if len(peers) == 0 || n.Kind != "" {
		return spec.VXLAN{}
	}
	joint.Peers = spec.FormatPeers(peers)
	return joint
}
