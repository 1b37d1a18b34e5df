package apply

import (
	"cmp"
	"context"
	"errors"
	"time"

	"orrery/internal/problem"
	"orrery/internal/transport/transfer"
)

// A pairTransfer is a transfer from one host to one other over one connection. Both hosts report how it
// ended.
type pairTransfer struct {
	transfer Transfer
	from, to string
	say      func(detail string)
	moved    func(bytes int64) // or nil if the caller does not need it

	apart bool   // the hosts cannot reach each other: the control host relays the transfer
	sum   string // digest reported by the sending host
	cut   bool   // the connection between the hosts was cut, and neither knows the cause
}

func (c *pairTransfer) run(ctx context.Context, f *Fleet) error {
	to, known := f.Host(c.to)
	if _, both := f.Host(c.from); !known || !both {
		return problem.New(problem.Failed, "no worker for hosts %s and %s", c.from, c.to)
	}
	type end struct {
		sum string
		err error
	}
	ended := make(chan end, 1)
	p, stop := newTransferRun(ctx, f, c.transfer, to, []string{c.from})
	defer stop()
	p.most, p.apart, p.said, p.moved = 1, c.apart, c.say, c.moved
	p.ended = func(sum string, err error) { ended <- end{sum, err} }
	bad := to.Transfers.Receive(p.ctx, p.transfer, p, c.say)
	met, relayed := p.contacted()
	c.apart = c.apart || relayed
	if !met {
		return cmp.Or(bad, transfer.ErrConnectionLost)
	}
	var sent end
	select {
	case sent = <-ended:
	case <-time.After(transfer.Timeout): // the receiver has ended, so the sender has no reason to go on
		sent.err = transfer.ErrConnectionLost
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	c.sum = sent.sum
	switch { // the host whose connection was cut knows less than the host that cut it
	case bad != nil && !errors.Is(bad, transfer.ErrConnectionLost):
		return bad
	case sent.err == nil && bad == nil:
		return nil
	case sent.err != nil && !errors.Is(sent.err, transfer.ErrConnectionLost):
		return sent.err
	}
	c.cut = true
	return problem.New(problem.Failed, "the connection from host %s to host %s was cut", c.from, c.to).
		Try("orrery host check, then run the same command again")
}

// CopyToNode copies a file or directory from a node of one host to a node of another one.
func CopyToNode(ctx context.Context, f *Fleet, e CopyTransfer, to string, moved func(bytes int64)) error {
	c := pairTransfer{transfer: Transfer{Copy: &e}, from: e.Host, to: to, say: func(string) {}, moved: moved}
	return c.run(ctx, f)
}
