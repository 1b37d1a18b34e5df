package apply

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"orrery/internal/plan"
	"orrery/internal/site/spec"
	"orrery/internal/transport/transfer"
)

// cutting is a host whose connections are cut a given number of times.
type cutting struct {
	TransferHost
	cuts, begun int
	failure     error
}

func (c *cutting) next() error {
	if c.begun++; c.begun <= c.cuts {
		return transfer.ErrConnectionLost
	}
	return c.failure
}

func (c *cutting) Send(_ context.Context, _ Transfer, _ ListenAddrs,
	meet func(transfer.EndpointInfo) (transfer.EndpointInfo, error),
	_ func(string)) (string, error) {
	end, err := transfer.Listen(netip.Addr{})
	if err != nil {
		return "", err
	}
	defer end.Close()
	if _, err := meet(end.Info()); err != nil {
		return "", err
	}
	return "sum", c.next()
}

func (c *cutting) Receive(ctx context.Context, _ Transfer, with Coordinator, _ func(string)) error {
	end, err := transfer.Listen(netip.Addr{})
	if err != nil {
		return err
	}
	defer end.Close()
	if _, err := with.Introduce(ctx, "sv1", end.Info()); err != nil {
		return err
	}
	return c.next()
}

// TestTransferGoesOn: a transfer whose connection is cut is attempted again, up to a limit. A
// transfer that fails for another reason is not.
func TestTransferGoesOn(t *testing.T) {
	before := transferPause
	transferPause = time.Millisecond
	t.Cleanup(func() { transferPause = before })
	other := errors.New("the disk is full")
	for what, test := range map[string]struct {
		cuts, begun int
		failure     error
		says        string
	}{
		"never":  {0, 1, nil, ""},
		"twice":  {2, 3, nil, ""},
		"always": {1000, maxTransfers, nil, "was cut"},
		"fails":  {0, 1, other, other.Error()},
	} {
		from, to := &cutting{cuts: test.cuts, failure: test.failure}, &cutting{cuts: test.cuts, failure: test.failure}
		f := fleetOf(&stub{}, &stub{})
		f.All[0].Transfers, f.All[1].Transfers = from, to
		h := moveWorker{f.All[1], f, &nodeMoves{apart: map[[2]string]bool{}}}
		n := &spec.Node{Site: "demo", Name: "a", ID: 1}
		sum, err := h.send(t.Context(), &plan.Step{Kind: plan.SendNode, Host: "sv2", Peer: "sv1", Subject: "a", Node: n,
			Old: n}, func(string) {})
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) || err == nil &&
			sum != "sum" {
			t.Errorf("%s: %q, %v", what, sum, err)
		}
		if from.begun != test.begun || to.begun != test.begun {
			t.Errorf("%s: it was begun %d and %d times", what, from.begun, to.begun)
		}
	}
}
