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

// An Errand is what one host takes from others, along lanes (package lane). Its fields are the
// kinds that there are, of which it has one: for another one, add a field, and what a host does at
// either end in package local (Worker.give, Worker.Take).
type Errand struct {
	Layer *LayerErrand `json:"layer,omitempty"`
	Node  *NodeErrand  `json:"node,omitempty"`
	Copy  *CopyErrand  `json:"copy,omitempty"`
}

// A NodeErrand is what a node has written, for the host to which it moves.
type NodeErrand struct {
	Step []byte `json:"step"` // plan.CopyNode or plan.SendNode, as plan.Encode has it
}

// A LayerErrand is a layer for the store of a host.
type LayerErrand struct {
	Layer   *spec.Layer `json:"layer"`
	Content string      `json:"content"` // digest of what must be in it
	From    []Giver     `json:"from"`
}

// A CopyErrand is a file or directory of a node, for another node.
type CopyErrand struct {
	Host    string     `json:"host"` // that gives
	From    *spec.Node `json:"from"`
	To      *spec.Node `json:"to"`
	Path    string     `json:"path"`
	Into    string     `json:"into"`
	Several bool       `json:"several,omitempty"` // Into is a directory
}

// A Giver is a host that gives.
type Giver struct {
	Host    string `json:"host"`
	Reserve bool   `json:"reserve,omitempty"` // it is asked only if others fail
}

// A TransferHost sends something to another host, or receives it from others.
type TransferHost interface {
	// Send sends what an errand is about along one lane. Meet gets the card of the host, and returns
	// that of the host that receives. Sum is of all that the other one has then, if the errand has
	// one.
	Send(ctx context.Context, e Errand, at Spot, meet func(transfer.Card) (transfer.Card, error),
		say func(detail string)) (sum string, err error)
	// Receive takes in what an errand is about from the hosts that it meets.
	Receive(ctx context.Context, e Errand, with Meeting, say func(detail string)) error
	// Dial connects on the host itself.
	Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

// A Spot says where a host that gives listens.
type Spot struct {
	Own    netip.Addr `json:"own,omitzero"`    // its own address, by which others reach it
	Toward netip.Addr `json:"toward,omitzero"` // or that of the host that takes; neither: others do not reach it
}

// A Meeting lets a host that takes meet those that give. Whoever steers gives it.
type Meeting interface {
	// Meet lets a host open its end of a lane for this one, and gives its card.
	Meet(ctx context.Context, peer string, mine transfer.Card) (transfer.Card, error)
	// Relay connects the two ends by way of whoever steers.
	Relay(ctx context.Context, mine transfer.Card) error
	// Moved tells him how many bytes more have come.
	Moved(bytes int64)
	// Doubt tells whoever steers of a host that gives something else than it should, or nothing.
	Doubt(text string)
}

// Along opens a lane to a host that gives: directly or, if that does not answer, by way of whoever steers.
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

// From takes something from one host that gives.
func From(ctx context.Context, m Meeting, peer string, take func(net.Conn) error) error {
	c, err := Along(ctx, m, peer)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // all has come, or nothing more does
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	return transfer.Cut(take(transfer.Unhurried(c)))
}

// Pass lets a host take something from others. Each of them opens its end when that one asks for
// it; all of that ends with this call.
func (f *Fleet) Pass(ctx context.Context, e Errand, to *Steered, from []string, say func(string)) error {
	p, end := newPassage(ctx, f, e, to, from)
	defer end()
	return to.Transfers.Receive(p.ctx, e, p, say)
}

// newPassage begins one. Its end ends all that it has begun.
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
	most   int  // lanes
	apart  bool // it is known that the hosts do not reach one another
	all    sync.WaitGroup

	said  func(detail string)         // what those say that give,
	given func(sum string, err error) // and how that has ended
	moved func(bytes int64)           // nil: nobody asks

	mutex   sync.Mutex
	asked   int            // how often to meet somebody
	met     map[string]met // by the fingerprint of the end that takes
	relayed bool
}

type met struct {
	giver        *Steered
	mine, theirs transfer.Card
}

// maxLanes is how many lanes a host can have for one errand: it may be mistaken, or hostile.
const maxLanes = 1000

// Meet lets a host open its end. What either end says is checked: no host shall lead another one astray.
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
		case theirs = <-opened: // it has failed since: whoever comes to it is told
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

// Relay connects two ends that have met, each at the place that is on its own host.
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

// Moved tells how many bytes more have come.
func (p *passage) Moved(bytes int64) {
	if p.moved != nil && bytes > 0 {
		p.moved(bytes)
	}
}

// lanes tells whether the host that takes has asked to meet another one, and whether it did not reach that.
func (p *passage) lanes() (met, relayed bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.asked > 0, p.relayed
}

// place returns the address by which others reach a host; the zero one: the site does not say.
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
