package backups

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"orrery/internal/apply"
	"orrery/internal/backup"
	"orrery/internal/backup/ferry"
	"orrery/internal/backup/vault"
	"orrery/internal/control"
	"orrery/internal/control/snapshots"
	"orrery/internal/problem"
	"orrery/internal/site/sitefile"
	"orrery/internal/snapshot"
	"orrery/internal/text/humanize"
	"orrery/internal/treesync"
)

// A multiHostBackup is a backup of a site on its hosts while it is being taken.
type multiHostBackup struct {
	Session *control.Session
	fleet   *apply.Fleet
	into    *backup.MultiHostBackup
	order   ferry.Request

	read, ready *snapshots.Barrier
	tempo       *snapshots.Coordinator
	layers      *layerAssignment
	lock        *siteLock
	parts       []*ferry.BackupReceiver // of each host
}

// backUpHosts takes a backup of a site on its hosts.
func backUpHosts(ctx context.Context, c *control.Session, b *backup.Backup, f *apply.Fleet) (*backup.Report, error) {
	all, err := b.Begin(ctx)
	if err != nil {
		return nil, err
	}
	t := &multiHostBackup{Session: c, fleet: f, into: all,
		order: ferry.Request{All: b.Selection.Nodes == nil, Secrets: len(b.To) > 0, Layers: b.Selection.WithLayers,
			Snapshots: b.Selection.WithSnapshots}}
	t.order.Nodes = slices.Sorted(maps.Keys(b.Selection.Nodes))
	dir, err := os.MkdirTemp("", "orrery-backup-")
	if err == nil {
		defer os.RemoveAll(dir) //nolint:errcheck // it is in the vault
		err = t.run(ctx, dir)
	}
	return all.Finish(ctx, err)
}

func (t *multiHostBackup) run(ctx context.Context, dir string) error {
	if err := t.fleet.MeasureClocks(ctx); err != nil {
		return err
	}
	names := t.fleet.Names()
	t.tempo = snapshots.NewCoordinator(names)
	t.lock = &siteLock{over: make(chan struct{})}
	t.layers = newLayerAssignment(t.fleet, func(digest string) string { return t.into.FormerHost("layer/" + digest) })
	t.read = snapshots.NewBarrier(names, nil)
	t.ready = snapshots.NewBarrier(names, func() error { return t.lock.acquire(ctx, t.Session, t.fleet) })
	err := t.receiveAll(ctx)
	if wrong := t.lock.release(); err == nil {
		err = wrong
	}
	if err == nil {
		err = t.mergeManifests()
	}
	if err == nil {
		err = t.releases(ctx, dir)
	}
	if err == nil {
		t.extended(dir)
	}
	return err
}

// extended adds to the backup what the site has from the site directories that it extends.
func (t *multiHostBackup) extended(dir string) {
	set := t.into.Selection
	if len(set.Site.Extends) == 0 {
		return
	}
	to := filepath.Join(dir, "extended")
	if err := sitefile.CopyBase(set.Dir, to); err != nil {
		t.into.Manifest.Left = append(t.into.Manifest.Left, fmt.Sprintf("what the site file has from %s: %s",
			set.Site.Extends[0], problem.Truncate(err.Error(), 300)))
		return
	}
	t.into.Also = append(t.into.Also, backup.Extended(to))
}

// receiveAll receives the data of all hosts. If one fails, the others are stopped.
func (t *multiHostBackup) receiveAll(ctx context.Context) error {
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
	t.parts = make([]*ferry.BackupReceiver, len(t.fleet.All))
	_ = t.fleet.ForEach(func(i int, h *apply.HostClient) error {
		t.parts[i] = &ferry.BackupReceiver{Host: h.Label, Site: t.into.Selection.Site, Request: t.order, Into: t.into,
			Barrier: &hostBarrier{t.tempo.ForHost(h), t, h.Name}}
		if err := t.receiveFrom(ctx, h, t.parts[i]); err != nil {
			fail(err)
		}
		return nil
	})
	return first
}

// receiveFrom receives the data of one host.
func (t *multiHostBackup) receiveFrom(ctx context.Context, h *apply.HostClient, take *ferry.BackupReceiver) error {
	return treesync.Pipe(ctx, func(way io.ReadWriter) error { return take.Run(ctx, way) },
		func(way io.ReadWriter) error { return h.Backups.Send(ctx, way) })
}

// A hostBarrier is the common pace of all hosts, as seen by one of them.
type hostBarrier struct {
	snapshot.Barrier
	of   *multiHostBackup
	host string
}

// Read reports that this host has read everything once, and waits for the other hosts.
func (p *hostBarrier) Read(ctx context.Context) error { return p.of.read.Wait(ctx, p.host, 0) }

// Ready reports that little is left to read on this host, and waits for the other hosts.
func (p *hostBarrier) Ready(ctx context.Context) error { return p.of.ready.Wait(ctx, p.host, 0) }

// mergeManifests merges the hosts' parts into one manifest.
func (t *multiHostBackup) mergeManifests() error {
	m := t.into.Manifest
	m.Pause = t.tempo.Pauses().Pause
	t.into.FinishBlock()
	at := map[string]string{}
	t.mergeLayers()
	// a host may have several instances of a node, of releases that are staged or were live
	by := map[string]*ferry.BackupReceiver{}
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
					Try("orrery status shows where nodes are; orrery up removes leftovers")
			}
			at[name], by[name] = p.Host, p
			m.Nodes = append(m.Nodes, *n)
		}
		for path, value := range p.Secrets {
			if existing, ok := t.into.Secrets[path]; ok && string(existing) != string(value) {
				return problem.New(problem.Surprise, "host %s has a different value of %s than other hosts", p.Host, path).
					Try("decide which value is correct, and remove the other from its host's state directory; --without leaves a host out until then")
			}
			t.into.Secrets[path] = value
		}
	}
	if len(m.Nodes) == 0 && !t.into.HasTrees() {
		return problem.New(problem.Failed, "none of these nodes of %s or their volumes exist", t.into.Selection.Site.Name).
			Try("orrery up")
	}
	for _, name := range t.fleet.Unknown {
		m.Hosts = append(m.Hosts, vault.Host{Name: name, Missing: true})
		m.Left = append(m.Left, t.describeMissing(name, at))
	}
	return nil
}

// describeMissing returns what the backup lacks because a host was left out.
func (t *multiHostBackup) describeMissing(host string, at map[string]string) string {
	var names []string
	s := t.into.Selection.Site
	for i := range s.Nodes {
		if n := &s.Nodes[i]; at[n.Name] == "" && (n.Host == "" || n.Host == host) &&
			(t.into.Selection.Nodes == nil || t.into.Selection.Nodes[n.Name]) {
			names = append(names, n.Name)
		}
	}
	if len(names) == 0 {
		return "host " + host + ": left out"
	}
	return "host " + host + ": left out, with the data of these nodes, which are on no other host: " +
		humanize.List(names, 12)
}

// releases adds to the backup the hosts' copies of the releases that nodes use or that are staged.
// Each copy comes from one host and is the same on all hosts.
func (t *multiHostBackup) releases(ctx context.Context, dir string) error {
	r, err := t.fleet.Records().Read(ctx)
	if err != nil {
		return err
	}
	needed := map[int]bool{} // release number to whether a node uses it
	if t.into.Selection.Nodes == nil {
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
		at, err := t.Session.Connector(t.into.Selection.Site).Releases(t.fleet).Edition(ctx, number, dir)
		if err != nil && !needed[number] {
			t.into.Manifest.Left = append(t.into.Manifest.Left,
				fmt.Sprintf("release %d, which no node uses: %s", number, problem.Truncate(err.Error(), 300)))
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

// A siteLock is the time during which this process holds the lock of a site.
type siteLock struct {
	once sync.Once
	over chan struct{}
	done chan error
}

// acquire takes the lock, and waits for a process that is changing the site.
func (l *siteLock) acquire(ctx context.Context, c *control.Session, f *apply.Fleet) error {
	l.done = make(chan error, 1)
	locked := make(chan bool)
	go func() {
		l.done <- retryWhileLocked(ctx, func() error {
			return c.RunLocked(ctx, f.Site(), f, func(*control.JournalWriter) error {
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

// release releases the lock, after the state of the frozen nodes has been recorded.
func (l *siteLock) release() error {
	l.once.Do(func() { close(l.over) })
	if l.done == nil {
		return nil
	}
	return <-l.done
}
