package snapshots

import (
	"context"
	"sync"
	"time"

	"orrery/internal/apply"
	"orrery/internal/engine"
	"orrery/internal/snapshot"
)

// maxWait is how long the nodes of a host stand still for others that do not yet.
const maxWait = 30 * time.Second

// A Tempo is that of hosts that take a snapshot together.
type Tempo struct {
	copied, stood, went *Gathering
	mutex               sync.Mutex
	pauses              []engine.Pause // by the clock of this machine
	hosts               []string       // what the snapshot says of them; none: there is one alone
}

// NewTempo returns that of some hosts.
func NewTempo(hosts []string) *Tempo {
	return &Tempo{copied: Gather(hosts, nil), stood: Gather(hosts, nil), went: Gather(hosts, nil)}
}

// Fail lets all hosts know that one has failed.
func (t *Tempo) Fail(err error) {
	for _, g := range []*Gathering{t.copied, t.stood, t.went} {
		g.End(err)
	}
}

// Of returns the tempo as a host sees it.
func (t *Tempo) Of(h *apply.Steered) snapshot.Pace { return &pace{t, h} }

type pace struct {
	*Tempo
	host *apply.Steered
}

// Copied returns the moment, once all hosts have copied what was there.
func (p *pace) Copied(ctx context.Context) (time.Time, error) {
	if err := p.copied.Arrive(ctx, p.host.Name, 0); err != nil {
		return time.Time{}, err
	}
	return p.host.Moment(), nil
}

// Stood waits until the nodes of all hosts stand still.
func (p *pace) Stood(ctx context.Context, _ engine.Pause) error {
	return p.stood.Arrive(ctx, p.host.Name, maxWait)
}

// Went notes how long the nodes of a host stood still, and returns how it was on all of them.
func (p *pace) Went(ctx context.Context, how engine.Pause) (snapshot.All, error) {
	how.At = p.host.Ours(how.At)
	if !how.Began.IsZero() {
		how.Began = p.host.Ours(how.Began)
	}
	p.mutex.Lock()
	p.pauses = append(p.pauses, how)
	p.mutex.Unlock()
	if err := p.went.Arrive(ctx, p.host.Name, 0); err != nil {
		return snapshot.All{}, err
	}
	return p.All(), nil
}

// All returns how it was on all hosts.
func (t *Tempo) All() snapshot.All {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return together(t.pauses, t.hosts)
}

// together returns how it was on all hosts.
func together(pauses []engine.Pause, hosts []string) snapshot.All {
	all := snapshot.All{Hosts: hosts}
	var first, began, over time.Time
	for _, p := range pauses {
		if p.At.After(all.Time) {
			all.Time = p.At
		}
		if p.Began.IsZero() { // no node ran there
			continue
		}
		if at := p.At.Add(-p.Skew); first.IsZero() || at.Before(first) {
			first = at
		}
		if began.IsZero() || p.Began.Before(began) {
			began = p.Began
		}
		if end := p.Began.Add(p.Long); end.After(over) {
			over = end
		}
	}
	if !began.IsZero() {
		all.Pause, all.Skew = over.Sub(began).Seconds(), all.Time.Sub(first).Seconds()
	}
	return all
}
