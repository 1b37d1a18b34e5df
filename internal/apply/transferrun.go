package apply

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"

	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/transport/transfer"
)

// A Transfer is what one host receives from others over direct connections (package transfer).
// Exactly one of its fields is set. For another kind of transfer, add a field, and what each end
// does to transferHost in package local.
type Transfer struct {
	Layer *LayerTransfer `json:"layer,omitempty"`
	Node  *NodeTransfer  `json:"node,omitempty"`
	Copy  *CopyTransfer  `json:"copy,omitempty"`
}

// A NodeTransfer is the data of a node, for the host to which it moves.
type NodeTransfer struct {
	Step []byte `json:"step"` // plan.CopyNode or plan.SendNode, encoded by plan.Encode
}

// A LayerTransfer is a layer for the store of a host.
type LayerTransfer struct {
	Layer   *spec.Layer   `json:"layer"`
	Content string        `json:"content"` // digest of its content
	From    []LayerSource `json:"from"`
}

// A CopyTransfer copies a file or directory of one node to another.
type CopyTransfer struct {
	Host    string     `json:"host"` // the sending host
	From    *spec.Node `json:"from"`
	To      *spec.Node `json:"to"`
	Path    string     `json:"path"`
	Into    string     `json:"into"`
	Several bool       `json:"several,omitempty"` // Into is a directory
}

// A LayerSource is a host that sends.
type LayerSource struct {
	Host    string `json:"host"`
	Reserve bool   `json:"reserve,omitempty"` // ask it only if others fail
}

// A TransferHost sends something to another host, or receives something from others.
type TransferHost interface {
	// Send carries out the sending half of a transfer over one connection. The function meet sends
	// the address and key of this host to the receiving host, and returns those of that host. The
	// result is the digest of all data that the receiver then has, if the kind of transfer has one.
	Send(ctx context.Context, e Transfer, at ListenAddrs, meet func(transfer.EndpointInfo) (transfer.EndpointInfo, error),
		say func(detail string)) (sum string, err error)
	// Receive carries out the receiving half of a transfer.
	Receive(ctx context.Context, e Transfer, with Coordinator, say func(detail string)) error
	// Dial connects to an address from the host itself.
	Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

// A ListenAddrs says where a sending host listens. If both addresses are zero, other hosts cannot reach
// it.
type ListenAddrs struct {
	Own    netip.Addr `json:"own,omitzero"`    // its own address, by which others reach it
	Toward netip.Addr `json:"toward,omitzero"` // else the address of the receiving host
}

// A Coordinator lets a receiving host meet the sending ones. The control host provides it.
type Coordinator interface {
	// Introduce makes the peer open its end of a connection to the caller, and returns the peer's
	// address and key.
	Introduce(ctx context.Context, peer string, mine transfer.EndpointInfo) (transfer.EndpointInfo, error)
	// Relay connects the two ends through the control host.
	Relay(ctx context.Context, mine transfer.EndpointInfo) error
	// Moved reports to the control host how many more bytes have arrived.
	Moved(bytes int64)
	// Warn tells the control host that a peer sent invalid data, or none.
	Warn(text string)
}

// DialPeer connects to a sending host, directly or, if that fails, through the control host.
func DialPeer(ctx context.Context, m Coordinator, peer string) (net.Conn, error) {
	end, err := transfer.Listen(netip.Addr{})
	if err != nil {
		return nil, err
	}
	defer end.Close()
	theirs, err := m.Introduce(ctx, peer, end.Info())
	if err != nil {
		return nil, err
	}
	if c, err := end.Dial(ctx, theirs); err == nil {
		return c, nil
	}
	if err := m.Relay(ctx, end.Info()); err != nil {
		return nil, err
	}
	return end.AcceptRelayed(ctx, theirs)
}

// ReceiveFrom receives something from one sending host.
func ReceiveFrom(ctx context.Context, m Coordinator, peer string, take func(net.Conn) error) error {
	c, err := DialPeer(ctx, m, peer)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // all has come, or nothing more does
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	return transfer.AsConnectionLost(take(transfer.WithoutDeadline(c)))
}

// RunTransfer transfers something from other hosts to one host. Each sender opens its end when the receiver
// asks for it. All connections end with this call.
func (f *Fleet) RunTransfer(ctx context.Context, e Transfer, to *HostClient, from []string, say func(string)) error {
	p, end := newTransferRun(ctx, f, e, to, from)
	defer end()
	return to.Transfers.Receive(p.ctx, e, p, say)
}

// newTransferRun starts a transfer. The caller must call end, which stops everything that the transfer
// has started.
func newTransferRun(ctx context.Context, f *Fleet, e Transfer, to *HostClient, from []string) (p *transferRun,
	end func()) {
	ctx, cancel := context.WithCancel(ctx)
	p = &transferRun{ctx: ctx, fleet: f, transfer: e, to: to, from: from, met: map[string]peerInfos{},
		most: maxConnections}
	p.said, p.ended = func(string) {}, func(string, error) {}
	return p, func() {
		cancel()
		p.all.Wait()
	}
}

// transferRun is one call of RunTransfer.
type transferRun struct {
	ctx      context.Context
	fleet    *Fleet
	transfer Transfer
	to       *HostClient
	from     []string
	most     int  // maximum number of connections
	apart    bool // the hosts are known not to reach each other
	all      sync.WaitGroup

	said  func(detail string)         // receives progress from the sending hosts
	ended func(sum string, err error) // called when a sending host has ended
	moved func(bytes int64)           // or nil if the caller does not need it

	mutex   sync.Mutex
	asked   int                  // number of calls of Introduce
	met     map[string]peerInfos // by the fingerprint of the receiving end
	relayed bool
}

type peerInfos struct {
	giver        *HostClient
	mine, theirs transfer.EndpointInfo
}

// maxConnections limits the connections that a host can request for one transfer, because it may be faulty
// or hostile.
const maxConnections = 1000

// Introduce makes the peer open its end. It checks the data of both hosts, so that no host can direct
// another one to a wrong address.
func (p *transferRun) Introduce(ctx context.Context, peer string,
	mine transfer.EndpointInfo) (theirs transfer.EndpointInfo, err error) {
	giver, ok := p.fleet.Host(peer)
	if !ok || !slices.Contains(p.from, peer) {
		return theirs, problem.New(problem.Surprise, "host %s requested data from host %q, which is not a source of this transfer",
			p.to.Name, peer)
	}
	if err := mine.Check(netip.Addr{}); err != nil {
		return theirs, invalidCard(p.to, err)
	}
	p.mutex.Lock()
	many := p.asked >= p.most
	p.asked++
	p.mutex.Unlock()
	if many {
		return theirs, invalidCard(p.to, errors.New("it requested too many connections"))
	}
	spot := ListenAddrs{Own: giver.address()}
	switch {
	case p.apart:
		spot = ListenAddrs{}
	case !spot.Own.IsValid() && giver.Local():
		spot.Toward = p.to.address()
	}
	ctx, cancel := context.WithTimeout(ctx, transfer.Timeout)
	defer cancel()
	opened, failed := make(chan transfer.EndpointInfo, 1), make(chan error, 1)
	p.all.Go(func() {
		sum, err := giver.Transfers.Send(p.ctx, p.transfer, spot,
			func(card transfer.EndpointInfo) (transfer.EndpointInfo, error) {
				own := spot.Own
				if giver.Local() {
					own = card.PublicAddr.Addr()
				}
				if err := card.Check(own); err != nil {
					return mine, invalidCard(giver, err)
				}
				select {
				case opened <- card:
					return mine, nil
				default:
					return mine, invalidCard(giver, errors.New("it sent more than one"))
				}
			}, p.said)
		p.ended(sum, err)
		if err == nil {
			err = errors.New("it opened no listener")
		}
		failed <- err
	})
	select {
	case theirs = <-opened:
	case err := <-failed:
		select {
		case theirs = <-opened: // it has failed since then: the peer that connects will see the error
		default:
			return theirs, err
		}
	case <-ctx.Done():
		return theirs, context.Cause(ctx)
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.met[mine.Fingerprint] = peerInfos{giver, mine, theirs}
	return theirs, nil
}

func invalidCard(h *HostClient, err error) error {
	return problem.New(problem.Surprise, "host %s sent invalid connection data: %v", h.Name, err)
}

// Relay connects two ends that have been introduced. Each is dialed on its own host, at its loopback
// address.
func (p *transferRun) Relay(ctx context.Context, mine transfer.EndpointInfo) error {
	p.mutex.Lock()
	m, ok := p.met[mine.Fingerprint]
	p.relayed = true
	p.mutex.Unlock()
	if !ok {
		return invalidCard(p.to, errors.New("no peer is known for it"))
	}
	ctx, cancel := context.WithTimeout(ctx, transfer.Timeout)
	defer cancel()
	a, err := m.giver.Transfers.Dial(ctx, m.theirs.LoopbackAddr)
	if err != nil {
		return fmt.Errorf("host %s: %w", m.giver.Name, err)
	}
	b, err := p.to.Transfers.Dial(ctx, m.mine.LoopbackAddr)
	if err != nil {
		_ = a.Close()
		return fmt.Errorf("host %s: %w", p.to.Name, err)
	}
	p.all.Go(func() { transfer.Splice(p.ctx, a, b) })
	return nil
}

// Moved reports how many more bytes have arrived.
func (p *transferRun) Moved(bytes int64) {
	if p.moved != nil && bytes > 0 {
		p.moved(bytes)
	}
}

// contacted reports whether the receiving host has asked to meet another one, and whether it had to use
// a relay.
func (p *transferRun) contacted() (met, relayed bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.asked > 0, p.relayed
}

// address returns the address by which other hosts reach a host, or the zero address if the site
// declares none.
func (h *HostClient) address() netip.Addr {
	if declared, ok := h.Site().Host(h.Name); ok {
		return declared.UnderlayAddress()
	}
	return netip.Addr{}
}

// Local reports whether a host is this machine.
func (h *HostClient) Local() bool {
	declared, ok := h.Site().Host(h.Name)
	return !ok || declared.Local()
}
