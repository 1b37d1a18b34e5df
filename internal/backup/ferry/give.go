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

// A Place is a host as far as one site is on it.
type Place struct {
	Dirs    host.Dirs
	Key     string
	Engines map[string]engine.Engine
	// Guard, if set, sees to it that nodes go on that stand still when this process is killed, until it is let go.
	Guard func(nodes ...*spec.Node) (letGo func(), err error)
}

// An Order says what of a host is wanted.
type Order struct {
	Nodes   []string `json:"nodes,omitempty"` // of these nodes
	All     bool     `json:"all,omitempty"`   // or of all that are there
	Secrets bool     `json:"secrets,omitempty"`
	Layers  bool     `json:"layers,omitempty"` // also the layers on which they stand, as far as others do not give them

	Snapshots bool `json:"snapshots,omitempty"` // also the host's parts of the snapshots of the site
}

// records is what is on record of what a host has given.
type records struct {
	Nodes  []nodedir.Record `json:"nodes"`
	Left   []string         `json:"left"`
	Layers []image.Record   `json:"layers"`
}

// Give sends what a host has of a site to the host at the other end.
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

// giveTo begins to give what is ordered.
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

// A giving is one call of Give, or of Find.
type giving struct {
	*line
	Place
	close   func() error // sends what is left of what was read
	order   Order
	set     *backup.Set
	pack    *vault.Packer
	reading *backup.Reading
	has     records
}

// before hears what was in the last backup, or what of it is still whole, and which pieces are
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

// read reads all that the host has: while the nodes run, and what has changed while they stand
// still on all hosts.
func (g *giving) read(ctx context.Context) error {
	if _, err := g.share(); err != nil {
		return err
	}
	if err := g.reading.First(ctx); err != nil {
		return err
	}
	if _, err := g.reach(isRead, nil); err != nil { // others may have had more to read
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
	} else if more { // nodes came to be meanwhile
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
		return err // the guard lets go on whoever does not, as soon as this process ends
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

// tellAll tells what was read.
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

// A branch is a tree that a host has, and what of it is not in the list.
type branch struct {
	vault.Tree
	Lacks []string `json:"lacks,omitempty"`
}

// tellSecrets tells the generated secrets that the host keeps, and the SSH host keys of the nodes
// that it gives.
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

// ofThese reports whether a path is that of a secret that is no node's, or one of these nodes'.
func ofThese(nodes []nodedir.Record, path string) bool {
	node, ok := nodeOfKey(path)
	return vault.SecretPath(path) && path != "keys/known_hosts" &&
		(!ok || slices.ContainsFunc(nodes, func(n nodedir.Record) bool { return n.Name == node }))
}
