package local

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/engine/fake"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
	"orrery/internal/treesync"
	"orrery/test/need"
)

// A removal is two hosts, and a node that moves from the first to the second. It needs no root.
type removal struct {
	*testing.T
	dirs [2]host.Dirs
	disk [2]*fake.Disk
	on   [2]*Host
	node *spec.Node
	sum  string // digest of what was sent last
}

func newRemoval(t *testing.T) *removal {
	t.Helper()
	need.SameIDs(t)
	m := &removal{T: t, node: &spec.Node{
		Site: "karoo", Name: "db", ID: 101, Engine: "fake", MachineID: "0123456789abcdef0123456789abcdef",
		Mounts: []spec.Mount{{Volume: "data", Path: "/data"}, {Volume: "all", Path: "/all", Shared: true}},
	}}
	for i := range m.on {
		m.dirs[i] = host.Dirs{State: t.TempDir(), Run: t.TempDir()}
		m.disk[i] = fake.OnDisk(m.dirs[i])
		m.on[i] = ThisMachine(moverNames[i], "karoo", m.dirs[i], map[string]engine.Engine{"fake": m.disk[i]}, nil)
	}
	must(t, m.disk[0].Create(t.Context(), m.node))
	m.write(filepath.Join(m.disk[0].Private(engine.RefOf(m.node)), "f"), "written")
	m.write(filepath.Join(m.volume(0), "rows"), "rows")
	m.write(filepath.Join(m.keys(0), "ssh_host_key"), "private")
	m.write(filepath.Join(m.keys(0), "ssh_host_key.pub"), "public")
	return m
}

func (m *removal) volume(i int) string { return m.on[i].moves.movingVolumes(m.node)["volumes/data"] }
func (m *removal) keys(i int) string   { return filepath.Join(m.dirs[i].Keys("karoo"), "db") }
func (m *removal) dir(i int) nodedir.Dir {
	return nodedir.Of(m.dirs[i], "karoo", m.node.ID)
}

func (m *removal) write(path, text string) {
	m.Helper()
	must(m.T, os.MkdirAll(filepath.Dir(path), 0o700))
	must(m.T, os.WriteFile(path, []byte(text), 0o600))
}

func (m *removal) wantText(path, want string) {
	m.Helper()
	if text, err := os.ReadFile(path); err != nil || string(text) != want {
		m.Errorf("%s says %q (%v), not %q", path, text, err, want)
	}
}

// do does a step of the move. Change modifies the step first.
func (m *removal) do(kind plan.Kind, change ...func(*plan.Step)) error {
	s := &plan.Step{Kind: kind, Subject: m.node.Name, Host: moverNames[1], Peer: moverNames[0], Node: m.node,
		Old: m.node, Digest: m.sum}
	on := m.on[1]
	if kind == plan.HandOverNode || kind == plan.CleanUpNode || kind == plan.ReclaimNode {
		s.Host, s.Peer, on = moverNames[0], moverNames[1], m.on[0]
	}
	for _, c := range change {
		c(s)
	}
	if kind != plan.CopyNode && kind != plan.SendNode {
		return on.Runs.Do(m.Context(), s, func(string) {})
	}
	near, far := net.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- m.on[1].moves.receiveData(s, far)
		far.Close()
	}()
	sum, err := m.on[0].moves.send(m.Context(), s, near, func(string) {})
	near.Close()
	err = errors.Join(err, <-ended)
	if err == nil {
		m.sum = sum
	}
	return err
}

// upTo does the steps of the move up to one of this kind.
func (m *removal) upTo(kind plan.Kind) {
	m.Helper()
	for _, k := range way {
		must(m.T, m.do(k))
		if k == kind {
			return
		}
	}
}

// TestMoveSteps: after a move, a node is on the other host with all of its own data. The data of
// another node of that name is renamed, and nothing stays on the former host.
func TestMoveSteps(t *testing.T) {
	m := newRemoval(t)
	m.write(filepath.Join(m.volume(1), "rows"), "old rows")
	resumed := func(s *plan.Step) { s.Runs, s.Configured = true, true }
	m.upTo(plan.HandOverNode)
	must(t, m.do(plan.ReceiveNode, resumed))
	nodes, err := m.disk[1].List(t.Context(), "karoo")
	if err != nil || len(nodes) != 1 || nodes[0].Name != "db" || !nodes[0].Resume || !nodes[0].Configured ||
		nodes[0].State != observe.Stopped {
		t.Errorf("the second host has %+v (%v)", nodes, err)
	}
	m.wantText(filepath.Join(m.disk[1].Private(engine.RefOf(m.node)), "f"), "written")
	m.wantText(filepath.Join(m.volume(1), "rows"), "rows")
	for name, mode := range map[string]os.FileMode{"ssh_host_key": 0o600, "ssh_host_key.pub": 0o644} {
		if info, err := os.Stat(filepath.Join(m.keys(1), name)); err != nil || info.Mode() != mode {
			t.Errorf("%s has the mode %v (%v)", name, info, err)
		}
	}
	before, _ := filepath.Glob(m.volume(1) + ".before-*/rows")
	if len(before) != 1 {
		t.Fatalf("put aside are %v", before)
	}
	m.wantText(before[0], "old rows")
	must(t, m.do(plan.CleanUpNode))
	must(t, m.do(plan.CleanUpNode)) // a killed run may have done it already
	for what, path := range map[string]string{
		"node": m.dir(0).Path(), "volume": m.volume(0), "keys": m.keys(0), "arrival": m.on[1].moves.store(101).Dir,
	} {
		if tree.Exists(path) {
			t.Errorf("the %s is left at %s", what, path)
		}
	}
	if err := m.do(plan.DiscardNode); err != nil {
		t.Errorf("a node that has come and has not run is dropped: %v", err)
	}
	if tree.Exists(m.dir(1).Path()) || tree.Exists(m.volume(1)) {
		t.Error("something of it stays")
	}
}

// TestMoveGuards: a step of a move does nothing if the state is not the one in the plan.
func TestMoveGuards(t *testing.T) {
	run := func(m *removal) { must(m.T, m.disk[0].Start(m.Context(), engine.RefOf(m.node))) }
	none := func(*removal) {}
	other := func(s *plan.Step) { s.Peer = "sv3" }
	sum := func(s *plan.Step) { s.Digest = "another" }
	named := func(s *plan.Step) {
		n := *s.Node
		n.Name = "web"
		s.Node = &n
	}
	for what, c := range map[string]struct {
		after  plan.Kind // or "" if nothing was done
		then   func(*removal)
		do     plan.Kind
		change func(*plan.Step)
		kind   problem.Kind
		says   string
	}{
		"what runs is not sent for good": {then: run, do: plan.SendNode, kind: problem.Surprise, says: "node db runs"},
		"what runs is copied":            {then: run, do: plan.CopyNode},
		"what is gone is not sent": {then: func(m *removal) {
			must(m.T, m.disk[0].Destroy(m.Context(), engine.RefOf(m.node)))
		}, do: plan.CopyNode, kind: problem.Surprise, says: "node db is gone"},
		"nothing comes over what is there": {then: func(m *removal) { must(m.T, m.disk[1].Create(m.Context(), m.node)) },
			do: plan.CopyNode, kind: problem.Surprise, says: "already exists"},
		"what was only copied is not given": {after: plan.CopyNode, then: none, do: plan.HandOverNode, kind: problem.Surprise,
			says: "its current state has not been sent to host sv2"},
		"nor what was not sent": {then: none, do: plan.HandOverNode, kind: problem.Surprise,
			says: "has not been sent"},
		"nor what was sent otherwise": {after: plan.SendNode, then: none, do: plan.HandOverNode, change: sum,
			kind: problem.Surprise, says: "has not been sent"},
		"nor what runs again": {after: plan.SendNode, then: run, do: plan.HandOverNode, kind: problem.Surprise,
			says: "has not been sent"},
		"nor what was copied again": {after: plan.SendNode,
			then: func(m *removal) { m.write(filepath.Join(m.volume(0), "more"), "x"); must(m.T, m.do(plan.CopyNode)) },
			do:   plan.HandOverNode, kind: problem.Surprise, says: "has not been sent"},
		"another host has given it": {after: plan.HandOverNode, then: none, do: plan.ReceiveNode, change: other,
			kind: problem.Surprise, says: "the data received from host sv3 does not match what it sent"},
		"something else was given": {after: plan.HandOverNode, then: none, do: plan.ReceiveNode, change: sum,
			kind: problem.Surprise, says: "does not match what it sent"},
		"another node was given": {after: plan.HandOverNode, then: none, do: plan.ReceiveNode, change: named,
			kind: problem.Surprise, says: "does not match what it sent"},
		"not all of it has come": {after: plan.CopyNode, then: none, do: plan.ReceiveNode,
			kind: problem.Surprise, says: "does not match what it sent"},
		"nothing has come": {then: none, do: plan.ReceiveNode, kind: problem.Surprise,
			says: "does not match what it sent"},
		"what was not given is not removed": {after: plan.SendNode, then: none, do: plan.CleanUpNode, kind: problem.Surprise,
			says: "node db was not handed over"},
		"nor what was given to another": {after: plan.HandOverNode, then: none, do: plan.CleanUpNode, change: other,
			kind: problem.Surprise, says: "was handed over to host sv2, not to sv3"},
		"what has run is not dropped": {after: plan.ReceiveNode,
			then: func(m *removal) { must(m.T, m.dir(1).Move().Finish()) }, do: plan.DiscardNode, kind: problem.Surprise,
			says: "node db has run on this host"},
		"of what has come nothing is left": {after: plan.SendNode, then: none, do: plan.DiscardNode},
		"what was given is taken back":     {after: plan.HandOverNode, then: none, do: plan.ReclaimNode},
	} {
		t.Run(what, func(t *testing.T) {
			m := newRemoval(t)
			if c.after != "" {
				m.upTo(c.after)
			}
			c.then(m)
			change := c.change
			if change == nil {
				change = func(*plan.Step) {}
			}
			before := m.state()
			err := m.do(c.do, change)
			if c.says == "" {
				must(t, err)
				return
			}
			if !problem.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
			if after := m.state(); !slices.Equal(after, before) {
				t.Errorf("there was %v, and now is %v", before, after)
			}
		})
	}
}

// state returns what exists of the node on the two hosts.
func (m *removal) state() (all []string) {
	m.Helper()
	for i, w := range m.on {
		h := observe.Host{}
		must(m.T, w.moves.observe(&h))
		for _, g := range h.OutgoingMoves {
			all = append(all, moverNames[i]+" has given "+g.Name+" to "+g.To)
		}
		for _, a := range h.IncomingMoves {
			whole := " has a part of "
			if a.Whole {
				whole = " has all of "
			}
			all = append(all, moverNames[i]+whole+a.Name+" from "+a.From)
		}
		nodes, err := m.disk[i].List(m.Context(), "karoo")
		must(m.T, err)
		for _, n := range nodes {
			all = append(all, moverNames[i]+" has "+n.Name+", "+string(n.State))
		}
		if tree.Exists(m.volume(i)) {
			all = append(all, moverNames[i]+" has its volume")
		}
	}
	return all
}

// TestMoveEnds: in whichever way an interrupted move ends, one host has the node, and the other one
// nothing of it.
func TestMoveEnds(t *testing.T) {
	m := newRemoval(t)
	m.upTo(plan.SendNode)
	must(t, m.do(plan.DiscardNode))
	want := []string{"sv1 has db, " + string(observe.Stopped), "sv1 has its volume"}
	if got := m.state(); !slices.Equal(got, want) {
		t.Errorf("dropped, and there is %v", got)
	}
	m.upTo(plan.HandOverNode)
	if got := m.state(); !slices.Equal(got, []string{"sv1 has given db to sv2", "sv1 has its volume",
		"sv2 has all of db from sv1"}) {
		t.Errorf("given, and there is %v", got)
	}
	must(t, m.do(plan.ReclaimNode))
	must(t, m.do(plan.DiscardNode))
	if got := m.state(); !slices.Equal(got, want) {
		t.Errorf("taken back, and there is %v", got)
	}
	m.upTo(plan.CleanUpNode)
	if got := m.state(); !slices.Equal(got, []string{"sv2 has db, " + string(observe.Stopped), "sv2 has its volume"}) {
		t.Errorf("left, and there is %v", got)
	}
}

// TestMoveUnable: it is an error to move nodes of an engine that does not support this, or to do
// another step as a step of a move.
func TestMoveUnable(t *testing.T) {
	m := newRemoval(t)
	m.on[0].Engines["fake"] = struct{ engine.Engine }{m.disk[0]}
	if err := m.do(plan.CopyNode); !problem.Is(err, problem.Unable) ||
		!strings.Contains(err.Error(), "the engine fake cannot move nodes") {
		t.Errorf("%v", err)
	}
	if err := m.on[0].moves.do(t.Context(), &plan.Step{Kind: plan.StartNode, Subject: "db"}); err == nil {
		t.Error("a start is a step of a move")
	}
}

// TestMoveSweep: received data stays so that the move can continue. Data of nodes that are on the
// host now, or without a valid record, is removed.
func TestMoveSweep(t *testing.T) {
	m := newRemoval(t)
	arrival := func(dir string, s treesync.State) treesync.Receiver {
		r := treesync.Receiver{Dir: filepath.Join(m.dirs[1].Arrivals("karoo"), dir)}
		must(t, os.MkdirAll(r.Dir, 0o700))
		if s.ID != 0 {
			must(t, r.Write(s))
		}
		return r
	}
	existing := *m.node
	existing.ID, existing.Name = 102, "web"
	must(t, m.disk[1].Create(t.Context(), &existing))
	away := *m.node
	away.ID, away.Name = 103, "away"
	must(t, m.disk[1].Create(t.Context(), &away))
	must(t, nodedir.Of(m.dirs[1], "karoo", 103).Move().SetMovedTo(nodedir.MoveRecord{To: "sv1"}))
	all := map[string]treesync.Receiver{
		"of a node that comes":        arrival("101", treesync.State{Name: "db", ID: 101, From: "sv1"}),
		"of one that is here":         arrival("102", treesync.State{Name: "web", ID: 102, From: "sv1"}),
		"of one that went away":       arrival("103", treesync.State{Name: "away", ID: 103, From: "sv1"}),
		"in the place of another":     arrival("104", treesync.State{Name: "x", ID: 105, From: "sv1"}),
		"without a record":            arrival("106", treesync.State{}),
		"what is not called by an id": arrival("other", treesync.State{}),
	}
	must(t, m.on[1].moves.sweep())
	stays := []string{"of a node that comes", "of one that went away", "what is not called by an id"}
	for what, r := range all {
		if found := tree.Exists(r.Dir); found != slices.Contains(stays, what) {
			t.Errorf("%s: it stays: %t", what, found)
		}
	}
	must(t, m.on[0].moves.sweep()) // nothing was ever received on this host
}

// TestMoveOwn: a node in quarantine moves with its copies of volumes, and a live node with its
// volumes in the host's state directory. Neither moves with shared volumes.
func TestMoveOwn(t *testing.T) {
	m := newRemoval(t)
	mounts := []spec.Mount{
		{Volume: "data"}, {Volume: "host", Source: "/srv"}, {Volume: "shared", Shared: true},
		{Volume: "copy", Copy: site.CopySnapshot}, {Volume: "none", Copy: spec.NoCopy},
		{Volume: "common", Copy: site.CopySnapshot, Shared: true},
	}
	for staged, want := range map[bool][]string{false: {"volumes/data"}, true: {"volumes/copy"}} {
		var names []string
		for name := range m.on[0].moves.movingVolumes(&spec.Node{Site: "karoo", Name: "db", Staged: staged, Mounts: mounts}) {
			names = append(names, name)
		}
		if !slices.Equal(names, want) {
			t.Errorf("in quarantine %t: %v", staged, names)
		}
		if keys := m.on[0].moves.hostKeyDir(&spec.Node{Name: "db", Staged: staged}); (keys == "") != staged {
			t.Errorf("in quarantine %t, its keys are at %q", staged, keys)
		}
	}
}
