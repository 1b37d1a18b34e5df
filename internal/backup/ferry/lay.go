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
	ofParcel = 'r' // what a host gets
	ofEntry  = 'f'
	ofPiece  = 'c'
	ofAsk    = 'a' // a tree that is wanted
)

// A Parcel is what a host gets of a backup: those trees of it that the host had, or that are of
// nodes which it is to have.
type Parcel struct {
	ID       string          `json:"id"`
	Title    string          `json:"title"`
	Manifest *vault.Manifest `json:"manifest"` // of the part
	Secrets  vault.Secrets   `json:"secrets"`  // nil: they are made anew
	Replace  bool            `json:"replace,omitempty"`
	// the site is on some host, and is taken down once all have laid down theirs
	Was     bool                   `json:"was,omitempty"`
	Without []string               `json:"without,omitempty"` // hosts that get nothing, because they were left out
	Sizes   map[string]backup.Size `json:"sizes"`             // of its trees, by their names
	Trust   bool                   `json:"trust,omitempty"`   // layers in it come into the store, if that lacks them
	// that is there, and gets what it had; "": the part of a site
	Node string `json:"node,omitempty"`
}

// A Laid part is on a host.
type Laid struct {
	Lacked map[string]int `json:"lacked,omitempty"` // what is not taken there, and how often
	// titles of layers that the backup has, and that are built nevertheless
	Builds []string `json:"builds,omitempty"`
}

// Send sends a part of a backup to a host, which lays it down: each of its trees that the host asks
// for, once. Of a part that lies there already, it asks for none.
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

// send sends a tree: each entry, and what is in it.
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

// Lay lays down on a host what comes for it, where nothing sees it.
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

// layNode lays down what a node had as a snapshot of it, by which it can be put in the place of
// what it has now. One that a run has left which was killed is taken as it is.
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

// SnapshotID returns the name of the snapshot that has what a node had.
func (p *Parcel) SnapshotID() string { return p.Node + "-" + p.ID }

// ready sees whether a part may be laid down, and whether it is.
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

// coming is what is in a part, as it comes.
type coming struct {
	*line
	title string
}

// Each asks for a tree, and reads its entries as they come.
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

// Get returns the next piece, which must be this one.
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

// Where names the backup.
func (c *coming) Where() string { return c.title }

// Damaged says what of it is damaged.
func (c *coming) Damaged(what string, err error) error {
	return problem.New(problem.Failed, "the backup is damaged: %s", strings.ToValidUTF8(what, "?")).At(c.title).
		Because(err)
}
