package snapshots

import (
	"context"
	"sync"
	"time"

	"orrery/internal/apply"
	"orrery/internal/engine"
	"orrery/internal/snapshot"
)

// maxWait is how long the nodes of a host stay frozen while nodes of other hosts are not frozen
// yet.
const maxWait = 30 * time.Second

// A Tempo synchronizes hosts that take a snapshot together.
type Tempo struct {
	copied, stood, went *Gathering
	mutex               sync.Mutex
	pauses              []engine.Pause // in the time of this machine's clock
	hosts               []string       // names to record in the snapshot, or none if there is only one host
}

// NewTempo returns a Tempo for hosts.
func NewTempo(hosts []string) *Tempo {
	return &Tempo{copied: Gather(hosts, nil), stood: Gather(hosts, nil), went: Gather(hosts, nil)}
}

// Fail tells all hosts that one of them has failed.
func (t *Tempo) Fail(err error) {
	for _, g := range []*Gathering{t.copied, t.stood, t.went} {
		g.End(err)
	}
}

// Of returns the pace for one host.
func (t *Tempo) Of(h *apply.Steered) snapshot.Pace { return &pace{t, h} }

type pace struct {
	*Tempo
	host *apply.Steered
}

// Copied waits until all hosts have made their first copy, and returns the time of the snapshot.
func (p *pace) Copied(ctx context.Context) (time.Time, error) {
	if err := p.copied.Arrive(ctx, p.host.Name, 0); err != nil {
		return time.Time{}, err
	}
	return p.host.Moment(), nil
}

// Stood waits until the nodes of all hosts are frozen.
func (p *pace) Stood(ctx context.Context, _ engine.Pause) error {
	return p.stood.Arrive(ctx, p.host.Name, maxWait)
}

// Went records how long the nodes of this host were frozen, and returns the result for all hosts.
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

// All returns the pauses of all hosts, combined.
func (t *Tempo) All() snapshot.All {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return together(t.pauses, t.hosts)
}

// together combines the pauses of all hosts.
func together(pauses []engine.Pause, hosts []string) snapshot.All {
	all := snapshot.All{Hosts: hosts}
	var first, began, over time.Time
	for _, p := range pauses {
		if p.At.After(all.Time) {
			all.Time = p.At
		}
		if p.Began.IsZero() { // no node ran on that host
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
