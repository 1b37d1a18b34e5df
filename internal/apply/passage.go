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

// An Errand is what one host receives from others over direct connections (package transfer).
// Exactly one of its fields is set. For another kind of transfer, add a field, and what each end
// does to transferHost in package local.
type Errand struct {
	Layer *LayerErrand `json:"layer,omitempty"`
	Node  *NodeErrand  `json:"node,omitempty"`
	Copy  *CopyErrand  `json:"copy,omitempty"`
}

// A NodeErrand is the data of a node, for the host to which it moves.
type NodeErrand struct {
	Step []byte `json:"step"` // plan.CopyNode or plan.SendNode, encoded by plan.Encode
}

// A LayerErrand is a layer for the store of a host.
type LayerErrand struct {
	Layer   *spec.Layer `json:"layer"`
	Content string      `json:"content"` // digest of its content
	From    []Giver     `json:"from"`
}

// A CopyErrand copies a file or directory of one node to another.
type CopyErrand struct {
	Host    string     `json:"host"` // the sending host
	From    *spec.Node `json:"from"`
	To      *spec.Node `json:"to"`
	Path    string     `json:"path"`
	Into    string     `json:"into"`
	Several bool       `json:"several,omitempty"` // Into is a directory
}

// A Giver is a host that sends.
type Giver struct {
	Host    string `json:"host"`
	Reserve bool   `json:"reserve,omitempty"` // ask it only if others fail
}

// A TransferHost sends something to another host, or receives something from others.
type TransferHost interface {
	// Send sends what an errand is about over one connection. Meet receives the host's card and
	// returns that of the receiving host. Sum is the digest of all data that the receiver then has,
	// if the errand has one.
	Send(ctx context.Context, e Errand, at Spot, meet func(transfer.Card) (transfer.Card, error),
		say func(detail string)) (sum string, err error)
	// Receive receives what an errand is about from the hosts that it meets.
	Receive(ctx context.Context, e Errand, with Meeting, say func(detail string)) error
	// Dial connects to an address from the host itself.
	Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

// A Spot says where a sending host listens. If both addresses are zero, other hosts cannot reach
// it.
type Spot struct {
	Own    netip.Addr `json:"own,omitzero"`    // its own address, by which others reach it
	Toward netip.Addr `json:"toward,omitzero"` // else the address of the receiving host
}

// A Meeting lets a receiving host meet the sending ones. The control host provides it.
type Meeting interface {
	// Meet makes the peer open its end of a connection to the caller, and returns the peer's card.
	Meet(ctx context.Context, peer string, mine transfer.Card) (transfer.Card, error)
	// Relay connects the two ends through the control host.
	Relay(ctx context.Context, mine transfer.Card) error
	// Moved reports to the control host how many more bytes have arrived.
	Moved(bytes int64)
	// Doubt tells the control host that a peer sent something else than it should, or nothing.
	Doubt(text string)
}

// Along connects to a sending host, directly or, if that fails, through the control host.
func Along(ctx context.Context, m Meeting, peer string) (net.Conn, error) {
	end, err := transfer.Open(netip.Addr{})
	if err != nil {
		return nil, err
	}
	defer end.Close()
	theirs, err := m.Meet(ctx, peer, end.Card())
	if err != nil {
		return nil, err
	}
	if c, err := end.Dial(ctx, theirs); err == nil {
		return c, nil
	}
	if err := m.Relay(ctx, end.Card()); err != nil {
		return nil, err
	}
	return end.Relayed(ctx, theirs)
}

// From receives something from one sending host.
func From(ctx context.Context, m Meeting, peer string, take func(net.Conn) error) error {
	c, err := Along(ctx, m, peer)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // all has come, or nothing more does
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	return transfer.Cut(take(transfer.Unhurried(c)))
}

// Pass transfers something from other hosts to one host. Each sender opens its end when the receiver
// asks for it. All connections end with this call.
func (f *Fleet) Pass(ctx context.Context, e Errand, to *Steered, from []string, say func(string)) error {
	p, end := newPassage(ctx, f, e, to, from)
	defer end()
	return to.Transfers.Receive(p.ctx, e, p, say)
}

// newPassage starts a passage. The caller must call end, which stops everything that the passage
// has started.
func newPassage(ctx context.Context, f *Fleet, e Errand, to *Steered, from []string) (p *passage, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	p = &passage{ctx: ctx, fleet: f, errand: e, to: to, from: from, met: map[string]met{}, most: maxLanes}
	p.said, p.given = func(string) {}, func(string, error) {}
	return p, func() {
		cancel()
		p.all.Wait()
	}
}

// passage is one call of Pass.
type passage struct {
	ctx    context.Context
	fleet  *Fleet
	errand Errand
	to     *Steered
	from   []string
	most   int  // maximum number of connections
	apart  bool // the hosts are known not to reach each other
	all    sync.WaitGroup

	said  func(detail string)         // receives progress from the sending hosts
	given func(sum string, err error) // called when a sending host has ended
	moved func(bytes int64)           // or nil if the caller does not need it

	mutex   sync.Mutex
	asked   int            // number of calls of Meet
	met     map[string]met // by the fingerprint of the receiving end
	relayed bool
}

type met struct {
	giver        *Steered
	mine, theirs transfer.Card
}

// maxLanes limits the connections that a host can request for one errand, because it may be faulty
// or hostile.
const maxLanes = 1000

// Meet makes the peer open its end. It checks the cards of both hosts, so that no host can direct
// another one to a wrong address.
func (p *passage) Meet(ctx context.Context, peer string, mine transfer.Card) (theirs transfer.Card, err error) {
	giver, ok := p.fleet.Host(peer)
	if !ok || !slices.Contains(p.from, peer) {
		return theirs, problem.New(problem.Surprise, "host %s asks for something of host %q, which is not to give it",
			p.to.Name, peer)
	}
	if err := mine.Check(netip.Addr{}); err != nil {
		return theirs, strange(p.to, err)
	}
	p.mutex.Lock()
	many := p.asked >= p.most
	p.asked++
	p.mutex.Unlock()
	if many {
		return theirs, strange(p.to, errors.New("it asks for too many"))
	}
	spot := Spot{Own: giver.place()}
	switch {
	case p.apart:
		spot = Spot{}
	case !spot.Own.IsValid() && giver.Local():
		spot.Toward = p.to.place()
	}
	ctx, cancel := context.WithTimeout(ctx, transfer.Timeout)
	defer cancel()
	opened, failed := make(chan transfer.Card, 1), make(chan error, 1)
	p.all.Go(func() {
		sum, err := giver.Transfers.Send(p.ctx, p.errand, spot, func(card transfer.Card) (transfer.Card, error) {
			own := spot.Own
			if giver.Local() {
				own = card.At.Addr()
			}
			if err := card.Check(own); err != nil {
				return mine, strange(giver, err)
			}
			select {
			case opened <- card:
				return mine, nil
			default:
				return mine, strange(giver, errors.New("it says more than one"))
			}
		}, p.said)
		p.given(sum, err)
		if err == nil {
			err = errors.New("it has opened nothing")
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
	p.met[mine.Print] = met{giver, mine, theirs}
	return theirs, nil
}

func strange(h *Steered, err error) error {
	return problem.New(problem.Surprise, "host %s gives a card for a connection that cannot be: %v", h.Name, err)
}

// Relay connects two ends that have met. Each is dialed on its own host, at the address Back of its
// card.
func (p *passage) Relay(ctx context.Context, mine transfer.Card) error {
	p.mutex.Lock()
	m, ok := p.met[mine.Print]
	p.relayed = true
	p.mutex.Unlock()
	if !ok {
		return strange(p.to, errors.New("nobody has met it"))
	}
	ctx, cancel := context.WithTimeout(ctx, transfer.Timeout)
	defer cancel()
	a, err := m.giver.Transfers.Dial(ctx, m.theirs.Back)
	if err != nil {
		return fmt.Errorf("host %s: %w", m.giver.Name, err)
	}
	b, err := p.to.Transfers.Dial(ctx, m.mine.Back)
	if err != nil {
		_ = a.Close()
		return fmt.Errorf("host %s: %w", p.to.Name, err)
	}
	p.all.Go(func() { transfer.Join(p.ctx, a, b) })
	return nil
}

// Moved reports how many more bytes have arrived.
func (p *passage) Moved(bytes int64) {
	if p.moved != nil && bytes > 0 {
		p.moved(bytes)
	}
}

// lanes reports whether the receiving host has asked to meet another one, and whether it had to use
// a relay.
func (p *passage) lanes() (met, relayed bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.asked > 0, p.relayed
}

// place returns the address by which other hosts reach a host, or the zero address if the site
// declares none.
func (h *Steered) place() netip.Addr {
	if declared, ok := h.Site().Host(h.Name); ok {
		return declared.Reached()
	}
	return netip.Addr{}
}

// Local reports whether a host is this machine.
func (h *Steered) Local() bool {
	declared, ok := h.Site().Host(h.Name)
	return !ok || declared.Local()
}
