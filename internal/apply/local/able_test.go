package local

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/apply"
	"orrery/internal/engine"
	"orrery/internal/engine/fake"
	"orrery/internal/host"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/transport/transfer"
	"orrery/test/need"
)

// A renewer is an engine that can move nodes to new programs, or fails to.
type renewer struct {
	engine.Engine
	failure error
}

func (r renewer) LiveUpgrade(context.Context, engine.Ref) (*engine.LiveUpgradeResult, error) {
	if r.failure != nil {
		return nil, r.failure
	}
	return &engine.LiveUpgradeResult{Downtime: 30 * time.Millisecond, Bytes: 2_500_000, Took: 4 * time.Second}, nil
}

// TestRenew: renew reports how long the node was frozen, and returns an error if it failed or is
// not supported.
func TestRenew(t *testing.T) {
	lost := errors.New("the program is gone")
	for what, c := range map[string]struct {
		of    engine.Engine
		says  string
		wrong error
		kind  problem.Kind
	}{
		"it goes on":            {of: renewer{}, says: "was frozen for 30 ms; 2.5 MB moved in 4.0 s"},
		"it does not":           {of: renewer{failure: lost}, wrong: lost},
		"an engine that cannot": {of: fake.New(), kind: problem.Surprise},
	} {
		l, said := &lifecycle{}, ""
		err := l.liveUpgrade(t.Context(), c.of, &spec.Node{Name: "vm", Engine: "kvm"}, func(text string) { said += text })
		failed := c.wrong != nil && errors.Is(err, c.wrong) || c.kind != 0 && problem.Is(err, c.kind)
		if said != c.says || failed == (c.says != "") || (err != nil) != failed {
			t.Errorf("%s: said is %q, %v", what, said, err)
		}
	}
}

// claimless is a machine that refuses every claim.
type claimless struct{ claims }

func (claimless) Claim(context.Context, string) error { return errors.New("it is kept elsewhere") }

type claims struct{ yielded []string }

func (*claims) Claim(context.Context, string) error   { return nil }
func (c *claims) Yield(_ context.Context, key string) { c.yielded = append(c.yielded, key) }
func (claims) Elsewhere(string) error                 { return nil }

// TestHold: only one holder at a time has the lock of a site. After a release, or if a part of the
// lock could not be taken, nothing stays locked.
func TestHold(t *testing.T) {
	run := filepath.Join(need.MemoryDir(t), "run")
	kept := &claims{}
	p := &SiteState{Key: "karoo", Dirs: host.Dirs{State: t.TempDir(), Run: run}}
	p.Backends.Claims = kept
	by := host.NewHolder("ada", "orrery up")
	letGo, err := (runHost{SiteState: p}).Lock(t.Context(), by)
	must(t, err)
	if _, err := (runHost{SiteState: p}).Lock(t.Context(), by); !problem.Is(err, problem.Locked) {
		t.Errorf("a second one: %v", err)
	}
	letGo()
	if !slices.Equal(kept.yielded, []string{"karoo"}) {
		t.Errorf("yielded was %v", kept.yielded)
	}
	p.Backends.Claims = &claimless{}
	if _, err := (runHost{SiteState: p}).Lock(t.Context(), by); err == nil || problem.Is(err, problem.Locked) {
		t.Errorf("what is kept elsewhere: %v", err)
	}
	p.Backends.Claims = kept
	letGo, err = (runHost{SiteState: p}).Lock(t.Context(), by) // nothing is left of the failed attempt
	must(t, err)
	letGo()
}

// TestShow: a node that boots a disk image gets the files that other nodes see of the host, and its
// hosts file is installed. Missing files are left out, and all other nodes get nothing.
func TestShow(t *testing.T) {
	m := newRemoval(t)
	n := *m.node
	n.Disk.Guest = site.CloudInit
	dir := m.dirs[0].Etc("karoo", n.ID)
	m.write(filepath.Join(dir, "hosts"), "10.0.0.1 db\n")
	m.write(filepath.Join(dir, "env"), "A=1\n")
	must(t, m.disk[0].Start(t.Context(), engine.RefOf(&n)))
	names := m.on[0].names
	must(t, names.copyEtc(t.Context(), m.disk[0], m.node))
	if _, ok := m.disk[0].File(engine.RefOf(&n), "/etc/orrery/env"); ok {
		t.Error("a node that sees the host's is given them")
	}
	must(t, names.copyEtc(t.Context(), m.disk[0], &n))
	for path, want := range map[string]string{"/etc/orrery/hosts": "10.0.0.1 db\n", "/etc/hosts": "10.0.0.1 db\n",
		"/etc/orrery/env": "A=1\n", "/etc/orrery/inventory.json": "", "/etc/env": ""} {
		if f, ok := m.disk[0].File(engine.RefOf(&n), path); ok != (want != "") || string(f.Content) != want {
			t.Errorf("%s: %t, %q", path, ok, f.Content)
		}
	}
}

// meets is a meeting that no host can join.
type meets struct{ apply.Coordinator }

func (meets) Moved(int64) {}

func (meets) Introduce(context.Context, string, transfer.EndpointInfo) (transfer.EndpointInfo, error) {
	return transfer.EndpointInfo{}, errors.New("nobody is met")
}

// TestUnknownTransfer: a transfer of an unknown kind is an error of its own.
func TestUnknownTransfer(t *testing.T) {
	m := newRemoval(t)
	step := func(kind plan.Kind) []byte {
		text, err := plan.Encode(&plan.Step{Kind: kind, Host: "sv2", Peer: "sv1", Subject: "db", Node: m.node, Old: m.node})
		must(t, err)
		return text
	}
	for what, c := range map[string]struct {
		errand apply.Transfer
		none   bool
	}{
		"nothing":                {apply.Transfer{}, true},
		"a layer of nothing":     {apply.Transfer{Layer: &apply.LayerTransfer{}}, true},
		"a copy to nowhere":      {apply.Transfer{Copy: &apply.CopyTransfer{From: m.node}}, true},
		"another step of a node": {apply.Transfer{Node: &apply.NodeTransfer{Step: step(plan.StartNode)}}, true},
		"a node":                 {apply.Transfer{Node: &apply.NodeTransfer{Step: step(plan.CopyNode)}}, false},
		"a copy":                 {apply.Transfer{Copy: &apply.CopyTransfer{Host: "sv1", From: m.node, To: m.node}}, false},
	} {
		if err := m.on[1].Transfers.Receive(t.Context(), c.errand, meets{}, func(string) {}); errors.Is(err,
			errUnknownTransfer) != c.none || err == nil {
			t.Errorf("%s: whoever takes it says %v", what, err)
		}
	}
	if _, err := stepOf(&apply.NodeTransfer{Step: json.RawMessage("{")}); err == nil ||
		errors.Is(err, errUnknownTransfer) {
		t.Errorf("what is no step: %v", err)
	}
}

// TestCopyRounds: the data of a running node is copied in rounds until little is left. For a
// stopped node there is one round.
func TestCopyRounds(t *testing.T) {
	for what, c := range map[string]struct {
		bytes  int
		kind   plan.Kind
		rounds int
	}{
		"little":               {100, plan.CopyNode, 1},
		"much":                 {3 << 20, plan.CopyNode, 2},
		"much, standing still": {3 << 20, plan.SendNode, 1},
	} {
		m := newRemoval(t)
		m.write(filepath.Join(m.volume(0), "rows"), strings.Repeat("x", c.bytes))
		rounds := 0
		s := &plan.Step{Kind: c.kind, Subject: "db", Host: "sv2", Peer: "sv1", Node: m.node, Old: m.node}
		near, far := net.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- m.on[1].moves.receiveData(s, far); far.Close() }()
		_, err := m.on[0].moves.send(t.Context(), s, near, func(text string) {
			if strings.Contains(text, " MB of ") {
				rounds++
			}
		})
		near.Close()
		if err := errors.Join(err, <-ended); err != nil || rounds != c.rounds {
			t.Errorf("%s: %d rounds, %v", what, rounds, err)
		}
	}
}

// TestSendUnknownTransfer: a host that is asked to send something unknown reports that to the control host
// and to the receiver.
func TestSendUnknownTransfer(t *testing.T) {
	m := newRemoval(t)
	start, err := plan.Encode(&plan.Step{Kind: plan.StartNode, Host: "sv2", Subject: "db", Node: m.node, Old: m.node})
	must(t, err)
	for what, errand := range map[string]apply.Transfer{
		"nothing": {}, "a layer of nothing": {Layer: &apply.LayerTransfer{}},
		"a copy from nowhere":    {Copy: &apply.CopyTransfer{To: m.node}},
		"another step of a node": {Node: &apply.NodeTransfer{Step: start}},
	} {
		taker, err := transfer.Listen(netip.Addr{})
		must(t, err)
		_, err = m.on[0].Transfers.Send(t.Context(), errand, apply.ListenAddrs{Own: netip.MustParseAddr("127.0.0.2")},
			func(card transfer.EndpointInfo) (transfer.EndpointInfo, error) {
				go func() {
					if c, err := taker.Dial(t.Context(), card); err == nil {
						_, _ = io.Copy(io.Discard, c)
						c.Close()
					}
				}()
				return taker.Info(), nil
			}, func(string) {})
		taker.Close()
		if !errors.Is(err, errUnknownTransfer) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
