package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"orrery/internal/apply"
	"orrery/internal/engine"
	"orrery/internal/engine/kvm"
	"orrery/internal/engine/vm"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/handover"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// A mover is two hosts, and a stopped virtual machine that moves between them.
type mover struct {
	*testing.T
	dirs [2]host.Dirs
	on   [2]*Host
	node *spec.Node
	sent string // the digest of what the first host has sent last
}

var moverNames = [2]string{"sv1", "sv2"}

func newMover(t *testing.T) *mover {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("owners need root")
	}
	m := &mover{T: t, node: &spec.Node{
		Site: "karoo", Name: "db", ID: 101, Engine: "kvm", MachineID: "0123456789abcdef0123456789abcdef",
		Mounts: []spec.Mount{{Volume: "data", Path: "/data"}},
		VM: site.VM{Disk: site.QCow2, Size: 8 << 20,
			Disks: []site.Drive{{Name: "more", Disk: site.RawFile, Size: 64 << 20}}},
	}}
	for i := range m.dirs {
		m.dirs[i] = host.Dirs{State: t.TempDir(), Run: t.TempDir()}
	}
	m.again()
	must(t, m.engine(0).Create(t.Context(), m.node))
	private := m.engine(0).Private(engine.RefOf(m.node))
	hold := filepath.Join(private, vm.DiskDir)
	for path, text := range map[string]string{
		filepath.Join(private, "root/f"): "written", filepath.Join(hold, "root.qcow2"): "root",
		filepath.Join(hold, vm.SeenFile):                                           "{}",
		filepath.Join(m.on[0].moves.movingVolumes(m.node)["volumes/data"], "rows"): "rows",
		filepath.Join(m.dirs[0].Keys("karoo"), "db/ssh_host_key"):                  "key",
	} {
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	disk, err := os.Create(filepath.Join(hold, "more.raw"))
	must(t, err)
	must(t, disk.Truncate(64<<20))
	_, err = disk.WriteAt([]byte("more"), 32<<20)
	must(t, err)
	must(t, disk.Close())
	return m
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// again replaces the processes on the hosts by new ones, which know only what is on disk.
func (m *mover) again() {
	m.Helper()
	for i, dirs := range m.dirs {
		e := kvm.New(dirs, image.Open(dirs.State))
		e.Slots = ""
		m.on[i] = ThisMachine(moverNames[i], "karoo", dirs, map[string]engine.Engine{"kvm": e}, nil)
		must(m.T, m.on[i].moves.sweep())
		must(m.T, e.Nodes.Sweep("karoo"))
	}
	m.sent = ""
}

func (m *mover) engine(i int) *kvm.Engine { return m.on[i].Engines["kvm"].(*kvm.Engine) }

// do does a step of a move to the second host.
func (m *mover) do(kind plan.Kind, cut int64) error {
	s := &plan.Step{Kind: kind, Subject: m.node.Name, Host: moverNames[1], Peer: moverNames[0], Node: m.node,
		Old: m.node, Digest: m.sent}
	on := m.on[1]
	switch kind {
	case plan.CopyNode, plan.SendNode:
		return m.carry(s, cut)
	case plan.HandOverNode, plan.CleanUpNode, plan.ReclaimNode:
		s.Host, s.Peer, on = moverNames[0], moverNames[1], m.on[0]
	}
	return on.Runs.Do(m.Context(), s, func(string) {})
}

// carry makes the first host send and the second one receive, until a number of bytes was sent.
func (m *mover) carry(s *plan.Step, cut int64) error {
	near, far := net.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- m.on[1].moves.receiveData(s, far)
		far.Close()
	}()
	sum, err := m.on[0].moves.send(m.Context(), s, &cutting{near, cut}, func(string) {})
	near.Close()
	err = errors.Join(err, <-ended)
	if err == nil {
		m.sent = sum
	}
	return err
}

// cutting is a connection that breaks after a number of bytes.
type cutting struct {
	net.Conn
	left int64
}

func (c *cutting) Write(b []byte) (int, error) {
	if c.left -= int64(len(b)); c.left < 0 {
		c.Close()
		return 0, io.ErrClosedPipe
	}
	return c.Conn.Write(b)
}

func (m *mover) seen() []observe.Host {
	m.Helper()
	all := make([]observe.Host, 2)
	for i, w := range m.on {
		var err error
		all[i].Name = moverNames[i]
		all[i].Nodes, err = w.Nodes.List(m.Context())
		must(m.T, err)
		must(m.T, w.moves.observe(&all[i]))
	}
	return all
}

// holder returns the host that has the machine, and reports an error if there are two.
func (m *mover) holder() (host int) {
	m.Helper()
	host = -1
	for i, h := range m.seen() {
		if n, ok := h.Node(m.node.Name); ok {
			if host >= 0 || n.State != observe.Stopped {
				m.Errorf("it is %s on host %s, and on another one", n.State, h.Name)
			}
			host = i
		}
	}
	return host
}

// settle completes what was interrupted.
func (m *mover) settle() {
	m.Helper()
	for _, h := range handover.Resolve(m.seen(), func(string) bool { return true },
		func(*observe.Host, *observe.OutgoingMove) bool { return true }).All {
		kinds := map[handover.Resolution][]plan.Kind{handover.Receive: {plan.ReceiveNode, plan.CleanUpNode},
			handover.CleanUp: {plan.CleanUpNode}, handover.Reclaim: {plan.ReclaimNode}}[h.Resolution]
		if h.Drops {
			kinds = append([]plan.Kind{plan.DiscardNode}, kinds...)
		}
		if h.Given != nil {
			m.sent = h.Given.Sum
		}
		for _, kind := range kinds {
			if err := m.do(kind, 0); err != nil {
				m.Fatalf("%s: %v", kind, err)
			}
			m.holder()
		}
	}
}

// wantWhole wants that a host has the machine with all that is its own, and the other one nothing.
func (m *mover) wantWhole(on int) {
	m.Helper()
	if holder := m.holder(); holder != on {
		m.Fatalf("it is on host %d of 0 and 1, and not on %d", holder, on)
	}
	private := m.engine(on).Private(engine.RefOf(m.node))
	hold := filepath.Join(private, vm.DiskDir)
	for path, want := range map[string]string{
		filepath.Join(private, "root/f"): "written", filepath.Join(hold, "root.qcow2"): "root",
		filepath.Join(hold, vm.SeenFile):                                            "{}",
		filepath.Join(m.on[on].moves.movingVolumes(m.node)["volumes/data"], "rows"): "rows",
		filepath.Join(m.dirs[on].Keys("karoo"), "db/ssh_host_key"):                  "key",
	} {
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			m.Errorf("%s says %q: %v", path, text, err)
		}
	}
	disk, err := os.ReadFile(filepath.Join(hold, "more.raw"))
	if err != nil || len(disk) != 64<<20 || string(disk[32<<20:32<<20+4]) != "more" {
		m.Errorf("the disk has %d bytes: %v", len(disk), err)
	}
	for _, what := range []string{"sites/karoo/nodes/*", "sites/karoo/arrivals/*", "sites/karoo/volumes/data/*",
		"sites/karoo/keys/*"} {
		if left, _ := filepath.Glob(filepath.Join(m.dirs[1-on].State, what)); len(left) > 0 {
			m.Errorf("left is %q", left)
		}
	}
}

// TestQuarantineMoves: a node in quarantine moves with its copies of volumes. The live node keeps
// its keys and volumes.
func TestQuarantineMoves(t *testing.T) {
	m := newMover(t)
	live := m.node
	staged := *m.node
	staged.ID, staged.Release, staged.Staged = 7101, 7, true
	staged.Mounts = []spec.Mount{{Volume: "data", Path: "/data"},
		{Volume: "rare", Path: "/rare", Exclusive: true, Copy: site.CopySnapshot, Release: 7},
		{Volume: "none", Path: "/none", Exclusive: true, Copy: spec.NoCopy, Release: 7}}
	m.node = &staged
	must(t, m.engine(0).Create(t.Context(), m.node))
	copied := func(on int) string {
		return filepath.Join(m.on[on].moves.movingVolumes(m.node)["volumes/rare"], "rows")
	}
	must(t, os.MkdirAll(filepath.Dir(copied(0)), 0o755))
	must(t, os.WriteFile(copied(0), []byte("copy"), 0o600))
	for _, kind := range way {
		must(t, m.do(kind, 1<<30))
	}
	if text, err := os.ReadFile(copied(1)); err != nil || string(text) != "copy" {
		t.Errorf("the copy says %q: %v", text, err)
	}
	seen := m.seen()
	if n, ok := seen[1].NodeByID(7101); !ok || !n.Staged || n.Release != 7 {
		t.Errorf("the second host has %+v", n)
	}
	if _, still := seen[0].NodeByID(7101); still || tree.Exists(copied(0)) {
		t.Error("the first host has it still")
	}
	if left, _ := filepath.Glob(filepath.Join(m.dirs[1].Keys("karoo"), "db")); len(left) > 0 {
		t.Errorf("it has taken %q", left)
	}
	must(t, m.engine(1).Destroy(t.Context(), engine.RefOf(m.node)))
	m.node = live
	m.again()
	m.wantWhole(0)
}

// relayed counts the connections that the control host makes on a host.
type relayed struct {
	apply.TransferHost
	times *atomic.Int32
}

func counted(w *Host, times *atomic.Int32) apply.Host {
	h := w.Host
	h.Transfers = relayed{h.Transfers, times}
	return h
}

func (r relayed) Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	r.times.Add(1)
	return r.TransferHost.Dial(ctx, to)
}

// TestMoveAlongLanes: data moves directly between hosts that reach each other, else through the
// control host. Whichever end fails, its error is returned.
func TestMoveAlongLanes(t *testing.T) {
	for addresses, times := range map[[2]string]int32{{"root@127.0.0.2", "root@127.0.0.3"}: 0,
		{"one.example", "two.example"}: 2 * 2} {
		m := newMover(t)
		s := &site.Site{Name: "karoo"}
		f := &apply.Fleet{}
		var relays atomic.Int32
		for i, address := range addresses {
			s.Hosts = append(s.Hosts, site.Host{Name: moverNames[i], Address: address})
			f.All = append(f.All, apply.NewHostClient(moverNames[i], s, m.dirs[i],
				func(apply.Secrets) apply.Host { return counted(m.on[i], &relays) }))
		}
		workers := f.StartRun()
		said := 0
		do := func(kind plan.Kind) error {
			step := &plan.Step{Kind: kind, Subject: m.node.Name, Host: moverNames[1], Peer: moverNames[0], Node: m.node,
				Old: m.node}
			if kind == plan.HandOverNode || kind == plan.CleanUpNode {
				step.Host, step.Peer = step.Peer, step.Host
			}
			return workers[step.Host].Do(t.Context(), step, func(string) { said++ })
		}
		for _, kind := range way {
			must(t, do(kind))
		}
		m.wantWhole(1)
		if relays.Load() != times || said != 2 {
			t.Errorf("%s: %d connections were made, and %d words said", addresses, relays.Load(), said)
		}
		if err := do(plan.CopyNode); err == nil || !strings.Contains(err.Error(), "already exists") {
			t.Errorf("one that takes and has it already says %v", err)
		}
		must(t, m.engine(1).Destroy(t.Context(), engine.RefOf(m.node)))
		if err := do(plan.CopyNode); err == nil || !strings.Contains(err.Error(), "is gone") {
			t.Errorf("one that gives and has nothing says %v", err)
		}
	}
}

var way = []plan.Kind{plan.CopyNode, plan.SendNode, plan.HandOverNode, plan.ReceiveNode, plan.CleanUpNode}

// TestMachineMoves: a stopped virtual machine moves to another host with its disks. If the move is
// killed, between two steps or during a transfer, exactly one host has the machine, and the next
// run completes the move.
func TestMachineMoves(t *testing.T) {
	for killed := range len(way) + 1 {
		t.Run(fmt.Sprint("before ", killed), func(t *testing.T) {
			m := newMover(t)
			for _, kind := range way[:killed] {
				must(t, m.do(kind, 1<<30))
				if m.holder() == -1 && kind != plan.HandOverNode {
					t.Fatalf("after %s nobody has it", kind)
				}
			}
			m.again()
			m.settle()
			on := 0
			if killed >= 3 { // it was handed over
				on = 1
			}
			m.wantWhole(on)
		})
	}
	for _, bytes := range []int64{0, 100, 1000, 60_000} {
		for at, kind := range way[:2] {
			if kind == plan.SendNode && bytes > 1000 {
				continue // less than that is left to send
			}
			t.Run(fmt.Sprint(kind, " cut after ", bytes), func(t *testing.T) {
				m := newMover(t)
				for _, before := range way[:at] {
					must(t, m.do(before, 1<<30))
				}
				if kind == plan.SendNode {
					m.again() // another process continues from what has arrived
				}
				if err := m.do(kind, bytes); err == nil {
					t.Fatal("nothing was cut")
				}
				if m.do(plan.HandOverNode, 0) == nil {
					t.Error("what has not come is given")
				}
				m.again()
				m.settle()
				m.wantWhole(0)
			})
		}
	}
}
