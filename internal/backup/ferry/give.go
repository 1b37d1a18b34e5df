package ferry

import (
	"context"
	"io"
	"slices"
	"sync"

	"orrery/internal/backup"
	"orrery/internal/backup/vault"
	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A HostSite is one site's part of a host.
type HostSite struct {
	Dirs    host.Dirs
	Key     string
	Engines map[string]engine.Engine
	// Guard, if set, makes sure that frozen nodes resume if this process is killed before letGo is
	// called.
	Guard func(nodes ...*spec.Node) (letGo func(), err error)
}

// An Request says what a host must send.
type Request struct {
	Nodes   []string `json:"nodes,omitempty"` // of these nodes
	All     bool     `json:"all,omitempty"`   // or of all its nodes
	Secrets bool     `json:"secrets,omitempty"`
	Layers  bool     `json:"layers,omitempty"` // also the layers of the nodes, unless other hosts send them

	Snapshots bool `json:"snapshots,omitempty"` // also the host's parts of the site's snapshots
}

// records are the records of what a host has sent.
type records struct {
	Nodes  []nodedir.Record `json:"nodes"`
	Left   []string         `json:"left"`
	Layers []image.Record   `json:"layers"`
}

// SendBackup sends a host's part of a site to the peer.
func SendBackup(ctx context.Context, at HostSite, way io.ReadWriter) error {
	l := newMessageConn(way)
	var o Request
	if err := l.recvJSON(msgRequest, &o); err != nil {
		return err
	}
	g := newBackupSender(l, at, o)
	if into := directOf[backup.Adder](way); into != nil {
		g.reading.Into = into
	}
	err := g.recvFormer()
	if err == nil {
		err = g.read(ctx)
	}
	if wrong := g.close(); err == nil {
		err = wrong
	}
	if err == nil {
		err = g.sendResults()
	}
	return err
}

// newBackupSender prepares sending what is ordered.
func newBackupSender(l *messageConn, at HostSite, o Request) *backupSender {
	g := &backupSender{messageConn: l, HostSite: at, order: o}
	g.set = &backup.Selection{
		Site: &site.Site{Name: at.Key}, Dirs: at.Dirs, Engines: at.Engines, Store: image.Open(at.Dirs.State),
		WithLayers: o.Layers, WithSnapshots: o.Snapshots,
	}
	if !o.All {
		g.set.Nodes = map[string]bool{}
		for _, name := range o.Nodes {
			g.set.Nodes[name] = true
		}
	}
	g.pack = vault.NewPacker(vault.NewRemoteVault(func(block []byte) error { return l.sendMessage(msgBlock, block) }))
	g.close = sync.OnceValue(g.pack.Close)
	g.pack.Known = map[vault.Digest]bool{}
	g.reading = &backup.HostReader{Selection: g.set, Into: g.pack}
	return g
}

// A backupSender is one call of Give or Find.
type backupSender struct {
	*messageConn
	HostSite
	close   func() error // sends the rest of what was read
	order   Request
	set     *backup.Selection
	pack    *vault.Packer
	reading *backup.HostReader
	has     records
}

// recvFormer receives what was in the last backup, or what of it is still intact, and which pieces are
// wanted if not all are.
func (g *backupSender) recvFormer() error {
	for {
		kind, name, err := g.recv()
		if err != nil {
			return err
		}
		if kind == msgStart {
			return nil
		}
		if kind == msgWanted {
			if err := g.addWanted(name); err != nil {
				return err
			}
			continue
		}
		if kind != msgTree {
			return errUnexpected
		}
		var entries []vault.Entry
		err = g.recvList(func(e *vault.Entry) error {
			entries = append(entries, *e)
			for _, x := range e.Data {
				for _, d := range x.Pieces {
					g.pack.Known[d] = true
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		g.reading.SetFormer(string(name), entries)
		if g.reading.Only != nil {
			g.reading.Only[string(name)] = true
		}
	}
}

// read reads everything that the host has: first while the nodes run, and then what has changed
// while the nodes are frozen on all hosts.
func (g *backupSender) read(ctx context.Context) error {
	if _, err := g.exchangeLayers(); err != nil {
		return err
	}
	if err := g.reading.ReadAll(ctx); err != nil {
		return err
	}
	if _, err := g.reportStage(stageRead, nil); err != nil { // other hosts may have had more to read
		return err
	}
	if err := g.reading.ReadChanged(ctx); err != nil {
		return err
	}
	if _, err := g.reportStage(stageReady, nil); err != nil {
		return err
	}
	if more, err := g.exchangeLayers(); err != nil {
		return err
	} else if more { // nodes were created in the meantime
		if err := g.reading.ReadAll(ctx); err != nil {
			return err
		}
	}
	writers, err := g.set.Writers(ctx)
	if err != nil {
		return err
	}
	letGo := func() {}
	if g.Guard != nil && len(writers) > 0 {
		if letGo, err = g.Guard(writers...); err != nil {
			return err
		}
	}
	next, err := g.reportStage(stageCopied, nil)
	if err != nil {
		letGo()
		return err
	}
	stood, err := engine.WhileFrozenAt(ctx, g.Engines, writers, next.At, func(ctx context.Context, p engine.Pause) error {
		if _, err := g.reportStage(stageFrozen, &p); err != nil {
			return err
		}
		g.has.Nodes, g.has.Left, err = g.reading.ReadFrozen(ctx)
		return err
	})
	if err != nil {
		return err // the guard resumes the nodes that are still frozen as soon as this process ends
	}
	letGo()
	if err := g.close(); err != nil {
		return err
	}
	if g.has.Layers, err = g.set.Recipes(g.has.Nodes); err != nil {
		return err
	}
	_, err = g.reportStage(stageResumed, &stood)
	return err
}

// sendResults sends the records and lists of what was read.
func (g *backupSender) sendResults() error {
	err := g.sendJSON(msgNodes, g.has)
	if err == nil {
		err = g.reading.Each(func(t vault.Tree, entries []vault.Entry, left []string) error {
			if err := g.sendJSON(msgTree, treeMessage{t, left}); err != nil {
				return err
			}
			return g.sendList(entries)
		})
	}
	if err == nil && g.order.Secrets {
		err = g.sendSecrets()
	}
	if err == nil {
		err = g.sendMessage(msgDone, nil)
	}
	return err
}

// A treeMessage is a tree of a host, and what is missing in its list.
type treeMessage struct {
	vault.Tree
	Lacks []string `json:"lacks,omitempty"`
}

// sendSecrets sends the generated secrets of the host, and the SSH host keys of the nodes that it
// sends.
func (g *backupSender) sendSecrets() error {
	all, err := g.set.Secrets()
	if err != nil {
		return err
	}
	for path := range all {
		if !belongsToNodes(g.has.Nodes, path) {
			delete(all, path)
		}
	}
	return g.sendJSON(msgSecrets, all)
}

// belongsToNodes reports whether a path is that of a secret of no node in particular, or of one of these
// nodes.
func belongsToNodes(nodes []nodedir.Record, path string) bool {
	node, ok := nodeOfKey(path)
	return vault.SecretPath(path) && path != "keys/known_hosts" && path != vault.AuthorityPath &&
		(!ok || slices.ContainsFunc(nodes, func(n nodedir.Record) bool { return n.Name == node }))
}
