package apply

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/transport/transfer"
)

// An end is a host at one end of a transfer. It does what a test sets.
type end struct {
	TransferHost
	gives func(at ListenAddrs, meet func(transfer.EndpointInfo) (transfer.EndpointInfo, error)) (string, error)
	takes func(with Coordinator) error
	did   []*plan.Step
}

func (e *end) Send(_ context.Context, _ Transfer, at ListenAddrs,
	meet func(transfer.EndpointInfo) (transfer.EndpointInfo, error),
	_ func(string)) (string, error) {
	return e.gives(at, meet)
}

func (e *end) Receive(_ context.Context, _ Transfer, with Coordinator, _ func(string)) error {
	return e.takes(with)
}

// runs does steps on an end.
type runs struct {
	RunHost
	*end
}

func (e runs) Do(_ context.Context, s *plan.Step, _ func(string)) error {
	e.did = append(e.did, s)
	return nil
}

func (e *end) Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", to.String())
}

// ends returns a fleet whose host sv1 sends and whose host sv2 receives.
func ends(stubs ...*stub) (f *Fleet, giver, taker *end) {
	f, giver, taker = fleetOf(append(stubs, &stub{}, &stub{})...), &end{}, &end{}
	for i, e := range []*end{giver, taker} {
		f.All[i].Transfers, f.All[i].Runs = e, runs{nil, e}
	}
	return f, giver, taker
}

// card returns the card of an end that listens until the test ends.
func card(t *testing.T) transfer.EndpointInfo {
	t.Helper()
	e, err := transfer.Listen(netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e.Info()
}

// TestMeet: no host can direct another one to a wrong address, or meet a host from which it must
// not receive.
func TestMeet(t *testing.T) {
	good, another := card(t), card(t)
	elsewhere, outside := good, good
	elsewhere.PublicAddr = netip.MustParseAddrPort("10.8.1.1:80")
	outside.LoopbackAddr = netip.MustParseAddrPort("10.8.1.9:22")
	lost := errors.New("lost")
	says := func(cards ...transfer.EndpointInfo) func(ListenAddrs,
		func(transfer.EndpointInfo) (transfer.EndpointInfo, error)) (string, error) {
		return func(_ ListenAddrs, meet func(transfer.EndpointInfo) (transfer.EndpointInfo, error)) (sum string, err error) {
			for _, c := range cards {
				if _, err := meet(c); err != nil {
					return "", err
				}
			}
			return "", nil
		}
	}
	for what, c := range map[string]struct {
		peer  string
		mine  transfer.EndpointInfo
		gives func(ListenAddrs, func(transfer.EndpointInfo) (transfer.EndpointInfo, error)) (string, error)
		wrong string
	}{
		"as it should be":            {"sv1", good, says(another), ""},
		"its own address":            {"sv1", good, says(elsewhere), ""},
		"a host that is not to give": {"sv3", good, says(another), `host sv2 requested data from host "sv3"`},
		"a host that is not there":   {"sv9", good, says(another), `host sv2 requested data from host "sv9"`},
		"a place on another host": {"sv1", outside, says(another),
			"host sv2 sent invalid connection data"},
		"an address of another": {"sv1", elsewhere, says(another), "host sv2 sent invalid connection data"},
		"no key": {"sv1", transfer.EndpointInfo{LoopbackAddr: good.LoopbackAddr}, says(another),
			"host sv2 sent invalid connection data"},
		"of the other, outside":   {"sv1", good, says(outside), "host sv1 sent invalid connection data"},
		"of the other, twice":     {"sv1", good, says(another, another, another), "sent more than one"},
		"the other opens nothing": {"sv1", good, says(), "it opened no listener"},
		"the other fails": {"sv1", good,
			func(ListenAddrs, func(transfer.EndpointInfo) (transfer.EndpointInfo, error)) (string, error) {
				return "", lost
			}, "lost"},
	} {
		f, giver, taker := ends(&stub{})
		told := make(chan error, 1)
		giver.gives = func(at ListenAddrs, meet func(transfer.EndpointInfo) (transfer.EndpointInfo, error)) (string, error) {
			sum, err := c.gives(at, meet)
			told <- err
			return sum, err
		}
		taker.takes = func(with Coordinator) error {
			_, err := with.Introduce(t.Context(), c.peer, c.mine)
			if err == nil { // the error of the sender after that goes to the sender
				err = <-told
			}
			return err
		}
		err := f.RunTransfer(t.Context(), Transfer{}, f.All[1], []string{"sv1"}, func(string) {})
		if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestSpot: a sending host listens at the address at which the site says others reach it. This
// machine, which has no such address, listens at the address from which it would connect to the
// receiver. Neither listens for others once the two are known not to reach each other.
func TestSpot(t *testing.T) {
	for what, c := range map[string]struct {
		local, apart bool
		want         ListenAddrs
	}{
		"another host":            {want: ListenAddrs{Own: netip.MustParseAddr("10.8.1.1")}},
		"this machine":            {local: true, want: ListenAddrs{Toward: netip.MustParseAddr("10.8.1.2")}},
		"apart":                   {apart: true},
		"apart from this machine": {local: true, apart: true},
	} {
		f, giver, taker := ends()
		if c.local {
			f.Site().Hosts[0].Address = "local"
		}
		var spot ListenAddrs
		giver.gives = func(at ListenAddrs, _ func(transfer.EndpointInfo) (transfer.EndpointInfo, error)) (string, error) {
			spot = at
			return "", nil
		}
		mine := card(t)
		taker.takes = func(with Coordinator) error {
			_, err := with.Introduce(t.Context(), "sv1", mine)
			return err
		}
		one := pairTransfer{from: "sv1", to: "sv2", say: func(string) {}, apart: c.apart}
		if err := one.run(t.Context(), f); err == nil || spot != c.want {
			t.Errorf("%s: %+v instead of %+v (%v)", what, spot, c.want, err)
		}
	}
}

// TestRelay: a transfer between hosts that cannot reach each other goes through this machine, and
// later transfers between them do not try a direct connection.
func TestRelay(t *testing.T) {
	f, giver, taker := ends()
	var spots []ListenAddrs
	giver.gives = func(at ListenAddrs, meet func(transfer.EndpointInfo) (transfer.EndpointInfo, error)) (string, error) {
		spots = append(spots, at)
		e, err := transfer.Listen(netip.Addr{})
		if err != nil {
			return "", err
		}
		defer e.Close()
		theirs, err := meet(e.Info())
		if err != nil {
			return "", err
		}
		c, err := e.Accept(t.Context(), theirs)
		if err != nil {
			return "", err
		}
		defer c.Close()
		_, err = io.WriteString(c, "rows")
		return "sum", err
	}
	var came string
	taker.takes = func(with Coordinator) error {
		if err := with.Relay(t.Context(), card(t)); err == nil || !strings.Contains(err.Error(), "no peer is known for it") {
			t.Errorf("for an end that has met nobody: %v", err)
		}
		return ReceiveFrom(t.Context(), with, "sv1", func(c net.Conn) error {
			text, err := io.ReadAll(c)
			came = string(text)
			with.Moved(int64(len(text)))
			return err
		})
	}
	h := moveWorker{f.All[1], f, &nodeMoves{sent: map[int]string{}, given: map[int]string{}, apart: map[[2]string]bool{}}}
	n := &spec.Node{Site: "demo", Name: "a", ID: 1}
	for range 2 {
		step := &plan.Step{Kind: plan.SendNode, Host: "sv2", Peer: "sv1", Subject: "a", Node: n, Old: n}
		if err := h.Do(t.Context(), step, func(string) {}); err != nil || came != "rows" {
			t.Fatalf("%q came: %v", came, err)
		}
		came = ""
	}
	if own := (ListenAddrs{Own: netip.MustParseAddr("10.8.1.1")}); len(spots) != 2 || spots[0] != own ||
		spots[1] != (ListenAddrs{}) {
		t.Errorf("the host that gives was to listen at %+v", spots)
	}
}

// TestCarry: the result of a transfer is the error of the host that knows more.
func TestCarry(t *testing.T) {
	full, broken := errors.New("the disk is full"), errors.New("the node is broken")
	for what, c := range map[string]struct {
		given, taken error
		unmet        bool
		want         error
		cut          bool
	}{
		"both have done it":             {},
		"the one that takes fails":      {taken: full, want: full},
		"both fail":                     {taken: full, given: broken, want: full},
		"the one that gives fails":      {given: broken, want: broken},
		"and the other is cut off":      {given: broken, taken: transfer.ErrConnectionLost, want: broken},
		"the one that takes is cut off": {taken: transfer.ErrConnectionLost, cut: true},
		"the one that gives is cut off": {given: transfer.ErrConnectionLost, cut: true},
		"both are":                      {taken: transfer.ErrConnectionLost, given: transfer.ErrConnectionLost, cut: true},
		"cut off, and the other fails":  {taken: full, given: transfer.ErrConnectionLost, want: full},
		"they have not met":             {unmet: true, want: transfer.ErrConnectionLost},
		"they have not met, and why":    {unmet: true, taken: full, want: full},
	} {
		f, giver, taker := ends()
		mine, theirs := card(t), card(t)
		giver.gives = func(_ ListenAddrs, meet func(transfer.EndpointInfo) (transfer.EndpointInfo, error)) (string, error) {
			if _, err := meet(theirs); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			return "sum", c.given
		}
		taker.takes = func(with Coordinator) error {
			if !c.unmet {
				if _, err := with.Introduce(t.Context(), "sv1", mine); err != nil {
					t.Errorf("%s: %v", what, err)
				}
				if _, err := with.Introduce(t.Context(), "sv1", mine); err == nil ||
					!strings.Contains(err.Error(), "requested too many connections") {
					t.Errorf("%s: a second time: %v", what, err)
				}
			}
			return c.taken
		}
		one := pairTransfer{from: "sv1", to: "sv2", say: func(string) {}}
		err := one.run(t.Context(), f)
		if c.cut {
			if problem.ExitCode(err) != int(problem.Failed) || !one.cut ||
				!strings.Contains(err.Error(), "from host sv1 to host sv2 was cut") {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		if !errors.Is(err, c.want) || one.cut || err == nil && one.sum != "sum" {
			t.Errorf("%s: %q, %v", what, one.sum, err)
		}
	}
	f, _, _ := ends()
	for _, c := range []pairTransfer{{from: "sv1", to: "sv9"}, {from: "sv9", to: "sv1"}} {
		if err := c.run(t.Context(), f); err == nil || !strings.Contains(err.Error(), "no worker for hosts") {
			t.Errorf("from %s to %s: %v", c.from, c.to, err)
		}
	}
}

// TestCopyMoved: the caller of a copy is told how many bytes have arrived. Impossible numbers are
// ignored.
func TestCopyMoved(t *testing.T) {
	f, giver, taker := ends()
	mine, theirs := card(t), card(t)
	giver.gives = func(_ ListenAddrs, meet func(transfer.EndpointInfo) (transfer.EndpointInfo, error)) (string, error) {
		_, err := meet(theirs)
		return "", err
	}
	taker.takes = func(with Coordinator) error {
		for _, bytes := range []int64{5, 0, -7, 3} {
			with.Moved(bytes)
		}
		_, err := with.Introduce(t.Context(), "sv1", mine)
		return err
	}
	moved := int64(0)
	if err := CopyToNode(t.Context(), f, CopyTransfer{Host: "sv1"}, "sv2",
		func(bytes int64) { moved += bytes }); err != nil || moved != 8 {
		t.Errorf("%d bytes have come: %v", moved, err)
	}
	if err := CopyToNode(t.Context(), f, CopyTransfer{Host: "sv1"}, "sv2", nil); err != nil {
		t.Errorf("if nobody asks: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	giver.gives = func(_ ListenAddrs, meet func(transfer.EndpointInfo) (transfer.EndpointInfo, error)) (string, error) {
		_, err := meet(theirs)
		cancel()
		return "", errors.Join(err, ctx.Err())
	}
	if err := CopyToNode(ctx, f, CopyTransfer{Host: "sv1"}, "sv2", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestHaul: the host that hands a node over, and the one that receives it, get the digest of what
// was sent in this run. If nothing was sent, they get the digest in the plan. A failed transfer
// sets no digest.
func TestHaul(t *testing.T) {
	f, giver, taker := ends()
	lost := errors.New("lost")
	var failure error
	giver.gives = func(_ ListenAddrs, meet func(transfer.EndpointInfo) (transfer.EndpointInfo, error)) (string, error) {
		_, err := meet(card(t))
		return "new", err
	}
	taker.takes = func(with Coordinator) error {
		_, err := with.Introduce(t.Context(), "sv1", card(t))
		return errors.Join(err, failure)
	}
	workers := f.StartRun()
	do := func(kind plan.Kind, on, sum string) error {
		n := &spec.Node{Site: "demo", Name: "a", ID: 1}
		return workers[on].Do(t.Context(), &plan.Step{Kind: kind, Host: on,
			Peer: map[string]string{"sv1": "sv2", "sv2": "sv1"}[on], Subject: "a",
			Node: n, Old: n, Digest: sum}, func(string) {})
	}
	want := func(what string, of *end, sum string) {
		t.Helper()
		if last := of.did[len(of.did)-1]; last.Digest != sum {
			t.Errorf("%s: the sum is %q, not %q", what, last.Digest, sum)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(do(plan.ReceiveNode, "sv2", "seen"))
	want("of a move that was cut short", taker, "seen")
	failure = lost
	if err := do(plan.SendNode, "sv2", ""); !errors.Is(err, lost) {
		t.Errorf("%v", err)
	}
	failure = nil
	must(do(plan.CopyNode, "sv2", "")) // a running node changes: this is not the copy that is handed over
	must(do(plan.HandOverNode, "sv1", ""))
	want("nothing was sent of what stands still", giver, "")
	must(do(plan.SendNode, "sv2", ""))
	must(do(plan.HandOverNode, "sv1", ""))
	want("given", giver, "new")
	must(do(plan.ReceiveNode, "sv2", "seen"))
	want("received", taker, "new")
	workers = f.StartRun()
	must(do(plan.ReceiveNode, "sv2", "seen"))
	want("in the next run", taker, "seen")
}
