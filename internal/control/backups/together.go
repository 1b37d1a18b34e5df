package backups

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"

	"orrery/internal/apply"
	"orrery/internal/backup"
	"orrery/internal/backup/ferry"
	"orrery/internal/backup/vault"
	"orrery/internal/control"
	"orrery/internal/control/snapshots"
	"orrery/internal/problem"
	"orrery/internal/snapshot"
	"orrery/internal/text/humanize"
	"orrery/internal/treesync"
)

// A together is a backup of a site on its hosts while it is being taken.
type together struct {
	Session *control.Session
	fleet   *apply.Fleet
	into    *backup.Together
	order   ferry.Order

	read, ready *snapshots.Gathering
	tempo       *snapshots.Tempo
	layers      *sharing
	lock        *turn
	parts       []*ferry.Taking // of each host
}

// takeTogether takes a backup of a site on its hosts.
func takeTogether(ctx context.Context, c *control.Session, b *backup.Backup, f *apply.Fleet) (*backup.Report, error) {
	all, err := b.Begin(ctx)
	if err != nil {
		return nil, err
	}
	t := &together{Session: c, fleet: f, into: all,
		order: ferry.Order{All: b.Set.Nodes == nil, Secrets: len(b.To) > 0, Layers: b.Set.WithLayers,
			Snapshots: b.Set.WithSnapshots}}
	t.order.Nodes = slices.Sorted(maps.Keys(b.Set.Nodes))
	dir, err := os.MkdirTemp("", "orrery-backup-")
	if err == nil {
		defer os.RemoveAll(dir) //nolint:errcheck // it is in the vault
		err = t.run(ctx, dir)
	}
	return all.Finish(ctx, err)
}

func (t *together) run(ctx context.Context, dir string) error {
	if err := t.fleet.Meet(ctx); err != nil {
		return err
	}
	names := t.fleet.Names()
	t.tempo = snapshots.NewTempo(names)
	t.lock = &turn{over: make(chan struct{})}
	t.layers = share(t.fleet, func(digest string) string { return t.into.Gave("layer/" + digest) })
	t.read = snapshots.Gather(names, nil)
	t.ready = snapshots.Gather(names, func() error { return t.lock.take(ctx, t.Session, t.fleet) })
	err := t.gather(ctx)
	if wrong := t.lock.end(); err == nil {
		err = wrong
	}
	if err == nil {
		err = t.merge()
	}
	if err == nil {
		err = t.releases(ctx, dir)
	}
	return err
}

// gather receives the data of all hosts. If one fails, the others are stopped.
func (t *together) gather(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var first error
	var once sync.Once
	fail := func(err error) {
		once.Do(func() { first = err })
		t.tempo.Fail(err)
		t.layers.end(err)
		t.read.End(err)
		t.ready.End(err)
		cancel(err)
	}
	t.parts = make([]*ferry.Taking, len(t.fleet.All))
	_ = t.fleet.Each(func(i int, h *apply.Steered) error {
		t.parts[i] = &ferry.Taking{Host: h.Label, Site: t.into.Set.Site, Order: t.order, Into: t.into,
			Pace: &pace{t.tempo.Of(h), t, h.Name}}
		if err := t.from(ctx, h, t.parts[i]); err != nil {
			fail(err)
		}
		return nil
	})
	return first
}

// from receives the data of one host.
func (t *together) from(ctx context.Context, h *apply.Steered, take *ferry.Taking) error {
	return treesync.Pipe(ctx, func(way io.ReadWriter) error { return take.Run(ctx, way) },
		func(way io.ReadWriter) error { return h.Backups.Send(ctx, way) })
}

// A pace is the common pace of all hosts, as seen by one of them.
type pace struct {
	snapshot.Pace
	of   *together
	host string
}

// Read reports that this host has read everything once, and waits for the other hosts.
func (p *pace) Read(ctx context.Context) error { return p.of.read.Arrive(ctx, p.host, 0) }

// Ready reports that little is left to read on this host, and waits for the other hosts.
func (p *pace) Ready(ctx context.Context) error { return p.of.ready.Arrive(ctx, p.host, 0) }

// merge merges the hosts' parts into one manifest.
func (t *together) merge() error {
	m := t.into.Manifest
	m.Pause = t.tempo.All().Pause
	t.into.Cut()
	at := map[string]string{}
	t.mergeLayers()
	// a host may have several instances of a node, of releases that are staged or were live
	by := map[string]*ferry.Taking{}
	for _, p := range t.parts {
		if p.Host != "" {
			m.Format, m.Hosts = vault.FormatHosts, append(m.Hosts, vault.Host{Name: p.Host})
		}
		m.Left = append(m.Left, p.Left...)
		for i := range p.Nodes {
			n := &p.Nodes[i]
			name := n.Name
			if n.Staged {
				name += "*"
			}
			if other := by[name]; other != nil && other != p {
				return problem.New(problem.Surprise, "hosts %s and %s both have node %s", other.Host, p.Host, n.Name).
					Try("orrery status shows what is where; orrery up clears away what is left over")
			}
			at[name], by[name] = p.Host, p
			m.Nodes = append(m.Nodes, *n)
		}
		for path, value := range p.Secrets {
			if existing, ok := t.into.Secrets[path]; ok && string(existing) != string(value) {
				return problem.New(problem.Surprise, "host %s keeps another value of %s than others", p.Host, path).
					Try("decide which is right, and remove it from the state directory of the other; --without leaves one out until then")
			}
			t.into.Secrets[path] = value
		}
	}
	if len(m.Nodes) == 0 && !t.into.Some() {
		return problem.New(problem.Failed, "nothing of these nodes of %s is there", t.into.Set.Site.Name).Try("orrery up")
	}
	for _, name := range t.fleet.Unknown {
		m.Hosts = append(m.Hosts, vault.Host{Name: name, Missing: true})
		m.Left = append(m.Left, t.missing(name, at))
	}
	return nil
}

// missing returns what the backup lacks because a host was left out.
func (t *together) missing(host string, at map[string]string) string {
	var names []string
	s := t.into.Set.Site
	for i := range s.Nodes {
		if n := &s.Nodes[i]; at[n.Name] == "" && (n.Host == "" || n.Host == host) &&
			(t.into.Set.Nodes == nil || t.into.Set.Nodes[n.Name]) {
			names = append(names, n.Name)
		}
	}
	if len(names) == 0 {
		return "host " + host + ": it was left out"
	}
	return "host " + host + ": it was left out, with what these nodes have that are on no other: " +
		humanize.List(names, 12)
}

// releases adds to the backup the hosts' copies of the releases that nodes use or that are staged.
// Each copy comes from one host and is the same on all hosts.
func (t *together) releases(ctx context.Context, dir string) error {
	r, err := t.fleet.Records().Read(ctx)
	if err != nil {
		return err
	}
	needed := map[int]bool{} // release number to whether a node uses it
	if t.into.Set.Nodes == nil {
		for _, number := range r.Staged {
			needed[number] = false
		}
		for _, number := range r.Active {
			needed[number] = true
		}
	}
	for i := range t.into.Manifest.Nodes {
		needed[t.into.Manifest.Nodes[i].Release] = true
	}
	delete(needed, 0)
	for _, number := range slices.Sorted(maps.Keys(needed)) {
		at, err := t.Session.Call(t.into.Set.Site).Releases(t.fleet).Edition(ctx, number, dir)
		if err != nil && !needed[number] {
			t.into.Manifest.Left = append(t.into.Manifest.Left,
				fmt.Sprintf("release %d, of which no node is: %s", number, problem.Short(err.Error(), 300)))
			continue
		}
		if err != nil {
			return err
		}
		t.into.Also = append(t.into.Also, backup.Release(number, at))
	}
	t.into.Manifest.Releases, err = json.Marshal(r)
	return err
}

// A turn is the time during which this process holds the lock of a site.
type turn struct {
	once sync.Once
	over chan struct{}
	done chan error
}

// take takes the lock, and waits for a process that is changing the site.
func (l *turn) take(ctx context.Context, c *control.Session, f *apply.Fleet) error {
	l.done = make(chan error, 1)
	locked := make(chan bool)
	go func() {
		l.done <- patiently(ctx, func() error {
			return c.LockedOn(ctx, f.Site(), f, func(*control.Account) error {
				close(locked)
				<-l.over
				return nil
			})
		})
	}()
	select {
	case <-locked:
		return nil
	case err := <-l.done:
		l.done <- nil // the error has been returned
		return err
	}
}

// end releases the lock, after the state of the frozen nodes has been recorded.
func (l *turn) end() error {
	l.once.Do(func() { close(l.over) })
	if l.done == nil {
		return nil
	}
	return <-l.done
}
