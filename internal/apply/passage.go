package apply

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"

	"orrery/internal/image"
	"orrery/internal/lane"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// An Errand is what one host takes from others, along lanes (package lane). Its fields are the kinds that there are, of which it has one: for another one, add a field, and what a host does at
// either end in package local (Worker.give, Worker.Take).
type Errand struct {
	Layer *LayerErrand `json:"layer,omitempty"`
}

// A LayerErrand is a layer for the store of a host.
type LayerErrand struct {
	Layer   *spec.Layer `json:"layer"`
	Content string      `json:"content"` // digest of what must be in it
	From    []Giver     `json:"from"`
}

// A Giver is a host that gives.
type Giver struct {
	Host    string `json:"host"`
	Reserve bool   `json:"reserve,omitempty"` // it is asked only if others fail
}

// Passing is what a Host does when hosts take something from one another.
type Passing interface {
	// Word says what is in a layer that the host has; fs.ErrNotExist: it has not got it.
	Word(ctx context.Context, layer string) (image.Word, error)
	// Give does what a host that gives does for an errand, along one lane. Meet gets its card, and gives that of the host that takes.
	Give(ctx context.Context, e Errand, at Spot, meet func(lane.Card) (lane.Card, error)) error
	// Take does what the host that takes does.
	Take(ctx context.Context, e Errand, with Meeting, say func(detail string)) error
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
	Meet(ctx context.Context, peer string, mine lane.Card) (lane.Card, error)
	// Relay connects the two ends by way of whoever steers.
	Relay(ctx context.Context, mine lane.Card) error
	// Doubt tells whoever steers of a host that gives something else than it should, or nothing.
	Doubt(text string)
}

// Along opens a lane to a host that gives: directly or, if that does not answer, by way of whoever steers.
func Along(ctx context.Context, m Meeting, peer string) (net.Conn, error) {
	end, err := lane.Open(netip.Addr{})
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

// Pass lets a host take something from others. Each of them opens its end when that one asks for it; all of that ends with this call.
func (f *Fleet) Pass(ctx context.Context, e Errand, to *Steered, from []string, say func(string)) error {
	ctx, cancel := context.WithCancel(ctx)
	p := &passage{ctx: ctx, fleet: f, errand: e, to: to, from: from, met: map[string]met{}}
	defer p.all.Wait()
	defer cancel()
	return to.Take(ctx, e, p, say)
}

// passage is one call of Pass.
type passage struct {
	ctx    context.Context
	fleet  *Fleet
	errand Errand
	to     *Steered
	from   []string
	all    sync.WaitGroup

	mutex sync.Mutex
	met   map[string]met // by the fingerprint of the end that takes
}

type met struct {
	giver        *Steered
	mine, theirs lane.Card
}

// mostLanes is how many lanes a host can have for one errand: it may be mistaken, or hostile.
const mostLanes = 1000

// Meet lets a host open its end. What either end says is checked: no host shall lead another one astray.
func (p *passage) Meet(ctx context.Context, peer string, mine lane.Card) (theirs lane.Card, err error) {
	giver, ok := p.fleet.Host(peer)
	if !ok || !slices.Contains(p.from, peer) {
		return theirs, problem.New(problem.Surprise, "host %s asks for something of host %q, which is not to give it", p.to.Name, peer)
	}
	if err := mine.Check(netip.Addr{}); err != nil {
		return theirs, strange(p.to, err)
	}
	p.mutex.Lock()
	many := len(p.met) >= mostLanes
	p.mutex.Unlock()
	if many {
		return theirs, strange(p.to, errors.New("it asks for too many"))
	}
	spot := Spot{Own: giver.place()}
	if !spot.Own.IsValid() && giver.local() {
		spot.Toward = p.to.place()
	}
	ctx, cancel := context.WithTimeout(ctx, lane.Patience)
	defer cancel()
	opened, failed := make(chan lane.Card, 1), make(chan error, 1)
	p.all.Go(func() {
		err := giver.Give(p.ctx, p.errand, spot, func(card lane.Card) (lane.Card, error) {
			own := spot.Own
			if giver.local() {
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
		})
		if err == nil {
			err = errors.New("it has opened nothing")
		}
		failed <- err
	})
	select {
	case theirs = <-opened:
	case err := <-failed:
		return theirs, err
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
func (p *passage) Relay(ctx context.Context, mine lane.Card) error {
	p.mutex.Lock()
	m, ok := p.met[mine.Print]
	p.mutex.Unlock()
	if !ok {
		return strange(p.to, errors.New("nobody has met it"))
	}
	ctx, cancel := context.WithTimeout(ctx, lane.Patience)
	defer cancel()
	a, err := m.giver.Dial(ctx, m.theirs.Back)
	if err != nil {
		return fmt.Errorf("host %s: %w", m.giver.Name, err)
	}
	b, err := p.to.Dial(ctx, m.mine.Back)
	if err != nil {
		_ = a.Close()
		return fmt.Errorf("host %s: %w", p.to.Name, err)
	}
	p.all.Go(func() { lane.Join(p.ctx, a, b) })
	return nil
}

// place gives the address by which others reach a host; the zero one: the site does not say.
func (h *Steered) place() netip.Addr {
	if is, ok := h.Site.Host(h.Name); ok {
		return is.Reached()
	}
	return netip.Addr{}
}

// local reports whether a host is this machine.
func (h *Steered) local() bool {
	is, ok := h.Site.Host(h.Name)
	return !ok || is.Local()
}
