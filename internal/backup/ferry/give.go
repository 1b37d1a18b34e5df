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

// A Place is one site's part of a host.
type Place struct {
	Dirs    host.Dirs
	Key     string
	Engines map[string]engine.Engine
	// Guard, if set, makes sure that frozen nodes resume if this process is killed before letGo is
	// called.
	Guard func(nodes ...*spec.Node) (letGo func(), err error)
}

// An Order says what a host must send.
type Order struct {
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

// Give sends a host's part of a site to the peer.
func Give(ctx context.Context, at Place, way io.ReadWriter) error {
	l := newLine(way)
	var o Order
	if err := l.hearOf(ofOrder, &o); err != nil {
		return err
	}
	g := giveTo(l, at, o)
	if into := vaultOf[backup.Adder](way); into != nil {
		g.reading.Into = into
	}
	err := g.before()
	if err == nil {
		err = g.read(ctx)
	}
	if wrong := g.close(); err == nil {
		err = wrong
	}
	if err == nil {
		err = g.tellAll()
	}
	return err
}

// giveTo prepares sending what is ordered.
func giveTo(l *line, at Place, o Order) *giving {
	g := &giving{line: l, Place: at, order: o}
	g.set = &backup.Set{
		Site: &site.Site{Name: at.Key}, Dirs: at.Dirs, Engines: at.Engines, Store: image.Open(at.Dirs.State),
		WithLayers: o.Layers, WithSnapshots: o.Snapshots,
	}
	if !o.All {
		g.set.Nodes = map[string]bool{}
		for _, name := range o.Nodes {
			g.set.Nodes[name] = true
		}
	}
	g.pack = vault.NewPacker(vault.NewOutgoing(func(block []byte) error { return l.say(ofBlock, block) }))
	g.close = sync.OnceValue(g.pack.Close)
	g.pack.Known = map[vault.Digest]bool{}
	g.reading = &backup.Reading{Set: g.set, Into: g.pack}
	return g
}

// A giving is one call of Give or Find.
type giving struct {
	*line
	Place
	close   func() error // sends the rest of what was read
	order   Order
	set     *backup.Set
	pack    *vault.Packer
	reading *backup.Reading
	has     records
}

// before receives what was in the last backup, or what of it is still intact, and which pieces are
// wanted if not all are.
func (g *giving) before() error {
	for {
		kind, name, err := g.hear()
		if err != nil {
			return err
		}
		if kind == ofStart {
			return nil
		}
		if kind == ofWanted {
			if err := g.want(name); err != nil {
				return err
			}
			continue
		}
		if kind != ofTree {
			return errStrange
		}
		var entries []vault.Entry
		err = g.hearList(func(e *vault.Entry) error {
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
		g.reading.Former(string(name), entries)
		if g.reading.Only != nil {
			g.reading.Only[string(name)] = true
		}
	}
}

// read reads everything that the host has: first while the nodes run, and then what has changed
// while the nodes are frozen on all hosts.
func (g *giving) read(ctx context.Context) error {
	if _, err := g.share(); err != nil {
		return err
	}
	if err := g.reading.First(ctx); err != nil {
		return err
	}
	if _, err := g.reach(isRead, nil); err != nil { // other hosts may have had more to read
		return err
	}
	if err := g.reading.Again(ctx); err != nil {
		return err
	}
	if _, err := g.reach(isReady, nil); err != nil {
		return err
	}
	if more, err := g.share(); err != nil {
		return err
	} else if more { // nodes were created in the meantime
		if err := g.reading.First(ctx); err != nil {
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
	next, err := g.reach(isCopied, nil)
	if err != nil {
		letGo()
		return err
	}
	stood, err := engine.StillAt(ctx, g.Engines, writers, next.At, func(ctx context.Context, p engine.Pause) error {
		if _, err := g.reach(isStill, &p); err != nil {
			return err
		}
		g.has.Nodes, g.has.Left, err = g.reading.Last(ctx)
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
	_, err = g.reach(isOver, &stood)
	return err
}

// tellAll sends the records and lists of what was read.
func (g *giving) tellAll() error {
	err := g.tell(ofNodes, g.has)
	if err == nil {
		err = g.reading.Each(func(t vault.Tree, entries []vault.Entry, left []string) error {
			if err := g.tell(ofTree, branch{t, left}); err != nil {
				return err
			}
			return g.list(entries)
		})
	}
	if err == nil && g.order.Secrets {
		err = g.tellSecrets()
	}
	if err == nil {
		err = g.say(ofDone, nil)
	}
	return err
}

// A branch is a tree of a host, and what is missing in its list.
type branch struct {
	vault.Tree
	Lacks []string `json:"lacks,omitempty"`
}

// tellSecrets sends the generated secrets of the host, and the SSH host keys of the nodes that it
// sends.
func (g *giving) tellSecrets() error {
	all, err := g.set.Secrets()
	if err != nil {
		return err
	}
	for path := range all {
		if !ofThese(g.has.Nodes, path) {
			delete(all, path)
		}
	}
	return g.tell(ofSecrets, all)
}

// ofThese reports whether a path is that of a secret of no node in particular, or of one of these
// nodes.
func ofThese(nodes []nodedir.Record, path string) bool {
	node, ok := nodeOfKey(path)
	return vault.SecretPath(path) && path != "keys/known_hosts" &&
		(!ok || slices.ContainsFunc(nodes, func(n nodedir.Record) bool { return n.Name == node }))
}
