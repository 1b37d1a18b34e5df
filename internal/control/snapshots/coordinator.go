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

// A Coordinator synchronizes hosts that take a snapshot together.
type Coordinator struct {
	copied, stood, went *Barrier
	mutex               sync.Mutex
	pauses              []engine.Pause // in the time of this machine's clock
	hosts               []string       // names to record in the snapshot, or none if there is only one host
}

// NewCoordinator returns a Coordinator for hosts.
func NewCoordinator(hosts []string) *Coordinator {
	return &Coordinator{copied: NewBarrier(hosts, nil), stood: NewBarrier(hosts, nil), went: NewBarrier(hosts, nil)}
}

// Fail tells all hosts that one of them has failed.
func (t *Coordinator) Fail(err error) {
	for _, g := range []*Barrier{t.copied, t.stood, t.went} {
		g.End(err)
	}
}

// ForHost returns the pace for one host.
func (t *Coordinator) ForHost(h *apply.HostClient) snapshot.Barrier { return &hostBarrier{t, h} }

type hostBarrier struct {
	*Coordinator
	host *apply.HostClient
}

// Copied waits until all hosts have made their first copy, and returns the time of the snapshot.
func (p *hostBarrier) Copied(ctx context.Context) (time.Time, error) {
	if err := p.copied.Wait(ctx, p.host.Name, 0); err != nil {
		return time.Time{}, err
	}
	return p.host.StartTime(), nil
}

// Stood waits until the nodes of all hosts are frozen.
func (p *hostBarrier) Stood(ctx context.Context, _ engine.Pause) error {
	return p.stood.Wait(ctx, p.host.Name, maxWait)
}

// Went records how long the nodes of this host were frozen, and returns the result for all hosts.
func (p *hostBarrier) Went(ctx context.Context, how engine.Pause) (snapshot.All, error) {
	how.At = p.host.ToLocalTime(how.At)
	if !how.Began.IsZero() {
		how.Began = p.host.ToLocalTime(how.Began)
	}
	p.mutex.Lock()
	p.pauses = append(p.pauses, how)
	p.mutex.Unlock()
	if err := p.went.Wait(ctx, p.host.Name, 0); err != nil {
		return snapshot.All{}, err
	}
	return p.Pauses(), nil
}

// Pauses returns the pauses of all hosts, combined.
func (t *Coordinator) Pauses() snapshot.All {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return combinePauses(t.pauses, t.hosts)
}

// combinePauses combines the pauses of all hosts.
func combinePauses(pauses []engine.Pause, hosts []string) snapshot.All {
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
