package ferry

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"strings"

	"orrery/internal/backup"
	"orrery/internal/backup/vault"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/problem"
	"orrery/internal/strict/jsonlimit"
	"orrery/internal/text/humanize"
)

const (
	ofParcel = 'r' // a Parcel
	ofEntry  = 'f'
	ofPiece  = 'c'
	ofAsk    = 'a' // requests a tree
)

// A Parcel is what a host gets of a backup: the trees that the host had, or those of nodes that it
// will have.
type Parcel struct {
	ID       string          `json:"id"`
	Title    string          `json:"title"`
	Manifest *vault.Manifest `json:"manifest"` // of the part
	Secrets  vault.Secrets   `json:"secrets"`  // or nil if they are generated again
	Replace  bool            `json:"replace,omitempty"`
	// the site exists on some host, and is taken down when all hosts have staged their parts
	Was     bool                   `json:"was,omitempty"`
	Without []string               `json:"without,omitempty"` // hosts that were left out and get nothing
	Sizes   map[string]backup.Size `json:"sizes"`             // of its trees, by name
	Trust   bool                   `json:"trust,omitempty"`   // store its layers if the store lacks them
	// the existing node that gets its former data, or "" for a part of a site
	Node string `json:"node,omitempty"`
}

// A Laid is a host's report on the part that it has staged.
type Laid struct {
	Lacked map[string]int `json:"lacked,omitempty"` // attributes that its file systems do not support, and how often
	// titles of layers that are in the backup, but will be built
	Builds []string `json:"builds,omitempty"`
}

// Send sends a part of a backup to a host, which stages it. The host requests each tree, at most
// once. If it has already staged the part, it requests none.
func Send(ctx context.Context, p *Parcel, from backup.Contents, saw func(int64), way io.ReadWriter) (*Laid, error) {
	l := newLine(way)
	straight(way, watched{from, saw})
	p.Sizes = map[string]backup.Size{}
	for i := range p.Manifest.Trees {
		if p.Manifest.Trees[i].Kind == vault.LayerTree && !p.Trust {
			continue
		}
		t := &p.Manifest.Trees[i]
		size, err := backup.SizeOf(ctx, from, t)
		if err != nil {
			return nil, err
		}
		p.Sizes[t.Name] = size
	}
	if err := l.tell(ofParcel, p); err != nil {
		return nil, err
	}
	for sent := map[string]bool{}; ; {
		kind, content, err := l.hear()
		if err != nil {
			return nil, err
		}
		if kind == ofDone {
			laid := &Laid{}
			return laid, jsonlimit.Unmarshal(content, laid)
		}
		t, ok := p.Manifest.Tree(string(content))
		if kind != ofAsk || !ok || sent[t.Name] || t.Kind == vault.LayerTree && !p.Trust {
			return nil, errStrange
		}
		sent[t.Name] = true
		if err := l.send(ctx, t, from, saw); err != nil {
			return nil, err
		}
	}
}

// send sends a tree: each entry, and its content.
func (l *line) send(ctx context.Context, t *vault.Tree, from backup.Contents, saw func(int64)) error {
	err := from.Each(t, func(e *vault.Entry) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		text, err := vault.WriteList([]vault.Entry{*e})
		if err == nil {
			err = l.put(ofEntry, text)
		}
		for _, x := range e.Data {
			for _, d := range x.Pieces {
				var content []byte
				if err == nil {
					content, err = from.Get(d)
				}
				if err == nil {
					saw(int64(len(content)))
					err = l.put(ofPiece, content)
				}
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return l.say(ofEnd, nil)
}

// Lay stages on a host what the peer sends.
func Lay(ctx context.Context, at Place, way io.ReadWriter) error {
	l := newLine(way)
	var p Parcel
	if err := l.hearOf(ofParcel, &p); err != nil {
		return err
	}
	if p.Manifest == nil || p.Manifest.Key != at.Key {
		return errStrange
	}
	if err := p.Manifest.Check(); err != nil {
		return err
	}
	if p.Node != "" {
		return l.layNode(ctx, at, &p)
	}
	lock, err := backup.TakeLock(ctx, at.Dirs, at.Key, host.NewHolder("root", "orrery restore"))
	if err != nil {
		return err
	}
	defer lock.Release()
	r := &backup.Restore{
		Part: backup.Part{
			Layout: backup.Layout{Dirs: at.Dirs, Key: at.Key, Twin: p.Manifest.Twin != ""},
			ID:     p.ID, Title: p.Title, Manifest: p.Manifest, Store: image.Open(at.Dirs.State), Replace: p.Replace,
			Without: p.Without,
		},
		Contents: contentsFrom(way, &coming{line: l, title: p.Title}), Secrets: p.Secrets, Sizes: p.Sizes,
		TrustLayers: p.Trust, Was: p.Was, Saw: func(int64) {},
	}
	lies, err := ready(at, r)
	if err != nil {
		return err
	}
	if !lies {
		if err := r.Stage(ctx); err != nil {
			return err
		}
	}
	return l.tell(ofDone, Laid{r.Lacked, r.Distrusted()})
}

// layNode stages the backup of a node as a snapshot that can replace the node. If a killed run has
// left such a snapshot, layNode keeps that one.
func (l *line) layNode(ctx context.Context, at Place, p *Parcel) error {
	all, err := nodedir.All(at.Dirs, at.Key)
	if err != nil {
		return err
	}
	for _, f := range all {
		if !f.Whole || f.Record.Name != p.Node || f.Record.Staged {
			continue
		}
		pick := &backup.Pick{From: &coming{line: l, title: p.Title}, Manifest: p.Manifest, Saw: func(int64) {},
			Lacked: map[string]int{}}
		if _, err := pick.Snapshot(ctx, at.Dirs, at.Key, p.SnapshotID(), f.Record, at.Engines[f.Record.Engine]); err != nil {
			return err
		}
		return l.tell(ofDone, Laid{Lacked: pick.Lacked})
	}
	return problem.New(problem.Failed, "node %s is not on this host, so it cannot be replaced", p.Node).
		Try("orrery up %s makes it; then run the same command again", p.Node)
}

// SnapshotID returns the id of the snapshot with the backup of a node.
func (p *Parcel) SnapshotID() string { return p.Node + "-" + p.ID }

// ready returns whether the part is already staged, or an error if it must not be staged.
func ready(at Place, r *backup.Restore) (lies bool, err error) {
	old, err := backup.OpenPart(at.Dirs, r.Store, at.Key)
	if err != nil {
		return false, err
	}
	if old != nil {
		if old.Lies(r) {
			return true, nil
		}
		if old.Going() {
			return false, problem.New(problem.Left, "a restore of %s from %s was interrupted", at.Key, old.Title).
				Try("orrery restore %s", old.Title)
		}
		if err := old.Clear(); err != nil {
			return false, err
		}
	}
	if existing := r.InTheWay(); len(existing) > 0 && !r.Replace {
		return false, problem.New(problem.Refused, "this host already has: %s; nothing was done", humanize.List(existing, 8)).
			Try("replace it with --replace")
	}
	return false, nil
}

// coming is a part that is being received.
type coming struct {
	*line
	title string
}

// Each requests a tree, and parses its entries as they arrive.
func (c *coming) Each(t *vault.Tree, visit func(*vault.Entry) error) error {
	if err := c.say(ofAsk, []byte(t.Name)); err != nil {
		return err
	}
	for {
		kind, text, err := c.hear()
		if err != nil {
			return err
		}
		if kind == ofEnd {
			return nil
		}
		if kind != ofEntry {
			return errStrange
		}
		if err := vault.EachEntry(bytes.NewReader(text), visit); err != nil {
			return err
		}
	}
}

// Get returns the next piece, which must be d.
func (c *coming) Get(d vault.Digest) ([]byte, error) {
	kind, content, err := c.hear()
	if err != nil {
		return nil, err
	}
	if kind != ofPiece || sha256.Sum256(content) != d {
		return nil, errStrange
	}
	return content, nil
}

// Where returns the name of the backup.
func (c *coming) Where() string { return c.title }

// Damaged returns the problem for damage in the backup.
func (c *coming) Damaged(what string, err error) error {
	return problem.New(problem.Failed, "the backup is damaged: %s", strings.ToValidUTF8(what, "?")).At(c.title).
		Because(err)
}
