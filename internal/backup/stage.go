package backup

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"orrery/internal/backup/vault"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/tree"
	"orrery/internal/volume"
)

// A Restore puts a backup in place. First all of it is laid down aside, where nothing sees it; then
// it is moved to where it belongs, each tree by one rename; private layers come last, each when its
// node has been made. A run that is killed has laid down all or not, and the next one goes on from
// there.
type Restore struct {
	Part
	Contents Contents        // of whoever has the backup
	Secrets  vault.Secrets   // decrypted, or nil if they are made anew
	Sizes    map[string]Size // of its trees, by their names, as their sender says
	// TrustLayers: layers in the backup come into the store, where all sites of the host find them by
	// the digest of their recipe. That they are what the recipe makes nothing but the word of whoever
	// made the backup says.
	TrustLayers bool
	Was         bool // the site is on its hosts, and is taken down once all is laid down
	Saw         func(bytes int64)
	Lacked      map[string]int // attributes that a file system here does not take, and how often
}

// progress is kept beside what is laid down: how far it has come, and, once all is laid down, what
// is needed to go on without the backup.
type progress struct {
	ID      string   `json:"id"` // of the backup
	From    string   `json:"from"`
	Moves   []move   `json:"moves"`
	Staged  bool     `json:"staged"` // all is laid down
	Opened  bool     `json:"opened"` // the secrets are among it
	SiteDir string   `json:"dir"`
	Twin    bool     `json:"twin,omitempty"`
	Replace bool     `json:"replace,omitempty"`
	Was     bool     `json:"was,omitempty"`     // the site was on this host when it began
	Cleared bool     `json:"cleared,omitempty"` // and has been taken down
	Apart   bool     `json:"apart,omitempty"`   // it is the part of one of the site's hosts,
	Going   bool     `json:"going,omitempty"`   // and all of them have laid down theirs: none goes back
	Without []string `json:"without,omitempty"` // but these, which have none
}

// A move takes what is laid down to its place.
type move struct {
	From string `json:"from"`
	To   string `json:"to"`
	File bool   `json:"file,omitempty"` // a secret, which takes the place of another
}

// Stage lays all down.
func (r *Restore) Stage(ctx context.Context) error {
	r.Lacked = map[string]int{}
	if err := r.Clear(); err != nil {
		return err
	}
	r.plan = progress{ID: r.ID, From: r.Title, Opened: r.Secrets != nil, SiteDir: r.SiteDir, Twin: r.Twin,
		Replace: r.Replace, Was: r.Was, Apart: true, Without: r.Without}
	if err := os.MkdirAll(r.aside(), 0o700); err != nil {
		return err
	}
	if err := r.note(); err != nil {
		return err
	}
	if err := r.room(); err != nil {
		return errors.Join(err, r.Clear())
	}
	for i := range r.Manifest.Trees {
		if err := r.tree(ctx, &r.Manifest.Trees[i]); err != nil {
			err = r.explain(ctx, err)
			return errors.Join(err, r.Clear())
		}
	}
	for _, name := range r.Secrets.Names() {
		if err := r.secret(name, r.Secrets[name]); err != nil {
			return err
		}
	}
	if err := r.snapshots(); err != nil {
		return errors.Join(err, r.Clear())
	}
	if err := r.releases(); err != nil {
		return err
	}
	return r.settle()
}

// explain says why it was not laid down; what there was of it goes.
func (r *Restore) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return problem.New(problem.Interrupted, "interrupted; nothing was put in place").At(r.Title)
	}
	var p *problem.Problem
	if errors.As(err, &p) {
		return p
	}
	return problem.New(problem.OfWriting(err), "the backup cannot be laid down; nothing was put in place").At(r.aside()).
		Because(err)
}

// tree lays down one tree.
func (r *Restore) tree(ctx context.Context, t *vault.Tree) error {
	lacks := func(attr string) { r.Lacked[attr]++ }
	if t.Kind == vault.LayerTree {
		if !r.TrustLayers {
			return nil
		}
		for i := range r.Manifest.Layers {
			if l := &r.Manifest.Layers[i]; l.Digest == t.Layer {
				return r.Store.Adopt(ctx, l, func(tree string) error { return lay(ctx, r.Contents, t, tree, r.Saw, lacks) })
			}
		}
		return r.damaged("layer "+t.Layer, vault.ErrMissing)
	}
	at, to := r.places(t)
	if at == "" {
		return nil
	}
	mode := os.FileMode(0o700)
	if t.Kind == vault.SiteTree {
		mode = 0o755
	}
	if err := os.MkdirAll(filepath.Dir(at), mode); err != nil {
		return err
	}
	if err := tree.RemoveAll(at); err != nil {
		return err
	}
	// It may be that it takes long: whoever comes after a kill must know of it.
	if to != "" {
		r.plan.Moves = append(r.plan.Moves, move{From: at, To: to})
		if err := r.note(); err != nil {
			return err
		}
	}
	return lay(ctx, r.Contents, t, at, r.Saw, lacks)
}

// secret lays down a secret.
func (r *Restore) secret(name string, content []byte) error {
	at, to := r.aside("secret", name), ""
	switch part, rest, _ := cut(name); part {
	case "secrets":
		to = filepath.Join(r.Dirs.Secrets(r.Key), rest)
	case "keys":
		to = filepath.Join(r.Dirs.Keys(r.Key), rest)
	default:
		return nil
	}
	mode := uint32(0o600)
	if filepath.Ext(name) == ".pub" {
		mode = 0o644
	}
	r.plan.Moves = append(r.plan.Moves, move{at, to, true})
	return host.WriteFile(host.File{Path: at, Content: content, Mode: mode})
}

// releases lays down what the host knew of releases. What was under way on the other host is not
// under way here, and the nodes of former releases do not come back: only what was live does.
func (r *Restore) releases() error {
	if len(r.Manifest.Releases) == 0 {
		return nil
	}
	known, err := r.Manifest.ReadReleases()
	if err != nil {
		return r.damaged("what it says of releases", err)
	}
	known.Switch, known.Trial, known.Former = nil, nil, nil
	at := r.aside("releases.json")
	r.plan.Moves = append(r.plan.Moves, move{at, filepath.Join(r.Dirs.Site(r.Key), "releases.json"), true})
	return host.WriteJSON(at, 0o644, known)
}

// settle brings all to disk and notes that it is laid down.
func (r *Restore) settle() error {
	if err := host.WriteJSON(r.aside(manifestAside), 0o600, r.Manifest); err != nil {
		return err
	}
	if err := volume.Sync(r.aside()); err != nil {
		return err
	}
	r.plan.Staged = true
	return r.note()
}

// InTheWay returns the directories that are there already where something is to be put, besides
// those of the site on this host.
func (r *Restore) InTheWay() []string {
	var all []string
	for i := range r.Manifest.Trees {
		t := &r.Manifest.Trees[i]
		if t.Kind != vault.VolumeTree || t.Path == "" || r.Twin {
			continue
		}
		if at := r.volume(t); tree.Exists(at) && !empty(at) {
			all = append(all, at)
		}
	}
	return all
}

// Distrusted returns the titles of layers that the backup has, and that are built from their
// recipes nevertheless.
func (r *Restore) Distrusted() []string {
	var all []string
	for i := range r.Manifest.Layers {
		l := &r.Manifest.Layers[i]
		if _, brought := r.Manifest.Tree("layer/" + l.Digest); !brought || r.TrustLayers {
			continue
		}
		if _, err := r.Store.Record(l.Digest); err != nil {
			all = append(all, l.Title)
		}
	}
	return all
}
