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
	msgRestorePart = 'r' // a RestorePart
	msgEntry       = 'f'
	msgPiece       = 'c'
	msgTreeRequest = 'a' // requests a tree
)

// A RestorePart is what a host gets of a backup: the trees that the host had, or those of nodes that it
// will have.
type RestorePart struct {
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

// A StageReport is a host's report on the part that it has staged.
type StageReport struct {
	Lacked map[string]int `json:"lacked,omitempty"` // attributes that its file systems do not support, and how often
	// titles of layers that are in the backup, but will be built
	Builds []string `json:"builds,omitempty"`
}

// SendRestore sends a part of a backup to a host, which stages it. The host requests each tree, at most
// once. If it has already staged the part, it requests none.
func SendRestore(ctx context.Context, p *RestorePart, from backup.Contents, saw func(int64),
	way io.ReadWriter) (*StageReport, error) {
	l := newMessageConn(way)
	setDirect(way, countedContents{from, saw})
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
	if err := l.sendJSON(msgRestorePart, p); err != nil {
		return nil, err
	}
	for sent := map[string]bool{}; ; {
		kind, content, err := l.recv()
		if err != nil {
			return nil, err
		}
		if kind == msgDone {
			laid := &StageReport{}
			return laid, jsonlimit.Unmarshal(content, laid)
		}
		t, ok := p.Manifest.Tree(string(content))
		if kind != msgTreeRequest || !ok || sent[t.Name] || t.Kind == vault.LayerTree && !p.Trust {
			return nil, errUnexpected
		}
		sent[t.Name] = true
		if err := l.sendTree(ctx, t, from, saw); err != nil {
			return nil, err
		}
	}
}

// sendTree sends a tree: each entry, and its content.
func (l *messageConn) sendTree(ctx context.Context, t *vault.Tree, from backup.Contents, saw func(int64)) error {
	err := from.Each(t, func(e *vault.Entry) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		text, err := vault.WriteList([]vault.Entry{*e})
		if err == nil {
			err = l.bufferMessage(msgEntry, text)
		}
		for _, x := range e.Data {
			for _, d := range x.Pieces {
				var content []byte
				if err == nil {
					content, err = from.Get(d)
				}
				if err == nil {
					saw(int64(len(content)))
					err = l.bufferMessage(msgPiece, content)
				}
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return l.sendMessage(msgEnd, nil)
}

// StageRestore stages on a host what the peer sends.
func StageRestore(ctx context.Context, at HostSite, way io.ReadWriter) error {
	l := newMessageConn(way)
	var p RestorePart
	if err := l.recvJSON(msgRestorePart, &p); err != nil {
		return err
	}
	if p.Manifest == nil || p.Manifest.Key != at.Key {
		return errUnexpected
	}
	if err := p.Manifest.Check(); err != nil {
		return err
	}
	if p.Node != "" {
		return l.stageNode(ctx, at, &p)
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
		Contents: contentsFrom(way, &incoming{messageConn: l, title: p.Title}), Secrets: p.Secrets, Sizes: p.Sizes,
		TrustLayers: p.Trust, Was: p.Was, Saw: func(int64) {},
	}
	lies, err := checkStaged(at, r)
	if err != nil {
		return err
	}
	if !lies {
		if err := r.Stage(ctx); err != nil {
			return err
		}
	}
	return l.sendJSON(msgDone, StageReport{r.Lacked, r.LayersToRebuild()})
}

// stageNode stages the backup of a node as a snapshot that can replace the node. If a killed run has
// left such a snapshot, stageNode keeps that one.
func (l *messageConn) stageNode(ctx context.Context, at HostSite, p *RestorePart) error {
	all, err := nodedir.All(at.Dirs, at.Key)
	if err != nil {
		return err
	}
	for _, f := range all {
		if !f.Whole || f.Record.Name != p.Node || f.Record.Staged {
			continue
		}
		pick := &backup.Extractor{From: &incoming{messageConn: l, title: p.Title}, Manifest: p.Manifest, Saw: func(int64) {},
			Lacked: map[string]int{}}
		if _, err := pick.Snapshot(ctx, at.Dirs, at.Key, p.SnapshotID(), f.Record, at.Engines[f.Record.Engine]); err != nil {
			return err
		}
		return l.sendJSON(msgDone, StageReport{Lacked: pick.Lacked})
	}
	return problem.New(problem.Failed, "node %s is not on this host, so it cannot be replaced", p.Node).
		Try("create it with orrery up %s; then run the same command again", p.Node)
}

// SnapshotID returns the id of the snapshot with the backup of a node.
func (p *RestorePart) SnapshotID() string { return p.Node + "-" + p.ID }

// checkStaged returns whether the part is already staged, or an error if it must not be staged.
func checkStaged(at HostSite, r *backup.Restore) (lies bool, err error) {
	old, err := backup.OpenPart(at.Dirs, r.Store, at.Key)
	if err != nil {
		return false, err
	}
	if old != nil {
		if old.IsStaged(r) {
			return true, nil
		}
		if old.AllStaged() {
			return false, problem.New(problem.Left, "a restore of %s from %s was interrupted", at.Key, old.Title).
				Try("orrery restore %s", old.Title)
		}
		if err := old.Clear(); err != nil {
			return false, err
		}
	}
	if existing := r.Conflicts(); len(existing) > 0 && !r.Replace {
		return false, problem.New(problem.Refused, "this host already has: %s; nothing was done", humanize.List(existing, 8)).
			Try("replace it with --replace")
	}
	return false, nil
}

// incoming is a part that is being received.
type incoming struct {
	*messageConn
	title string
}

// Each requests a tree, and parses its entries as they arrive.
func (c *incoming) Each(t *vault.Tree, visit func(*vault.Entry) error) error {
	if err := c.sendMessage(msgTreeRequest, []byte(t.Name)); err != nil {
		return err
	}
	for {
		kind, text, err := c.recv()
		if err != nil {
			return err
		}
		if kind == msgEnd {
			return nil
		}
		if kind != msgEntry {
			return errUnexpected
		}
		if err := vault.EachEntry(bytes.NewReader(text), visit); err != nil {
			return err
		}
	}
}

// Get returns the next piece, which must be d.
func (c *incoming) Get(d vault.Digest) ([]byte, error) {
	kind, content, err := c.recv()
	if err != nil {
		return nil, err
	}
	if kind != msgPiece || sha256.Sum256(content) != d {
		return nil, errUnexpected
	}
	return content, nil
}

// Where returns the name of the backup.
func (c *incoming) Where() string { return c.title }

// Damaged returns the problem for damage in the backup.
func (c *incoming) Damaged(what string, err error) error {
	return problem.New(problem.Failed, "the backup is damaged: %s", strings.ToValidUTF8(what, "?")).At(c.title).
		Because(err)
}
