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

// A Restore restores a backup. First, everything is staged where nothing reads it. Then each tree
// is moved to its place by one rename. Private layers come last, each after its node was created.
// If a run is killed, the next one continues if everything was staged, or starts again.
type Restore struct {
	Part
	Contents Contents        // from the machine that has the backup
	Secrets  vault.Secrets   // decrypted, or nil if they are generated again
	Sizes    map[string]Size // of its trees by name, as reported by the sender
	// TrustLayers stores the layers of the backup in the host's store, where all sites find them by
	// the digest of their recipe. Only the author of the backup guarantees that they were built
	// from it.
	TrustLayers bool
	Was         bool // the site exists on its hosts, and is taken down when everything is staged
	Saw         func(bytes int64)
	Lacked      map[string]int // attributes that a local file system does not support, and how often
}

// progress is stored in the staging directory. It says how far the restore has come. When
// everything is staged, it has what is needed to continue without the backup.
type progress struct {
	ID      string `json:"id"` // of the backup
	From    string `json:"from"`
	Moves   []move `json:"moves"`
	Staged  bool   `json:"staged"` // everything is staged
	Opened  bool   `json:"opened"` // including the secrets
	SiteDir string `json:"dir"`
	Twin    bool   `json:"twin,omitempty"`
	Replace bool   `json:"replace,omitempty"`
	Was     bool   `json:"was,omitempty"`     // the site was on this host when the restore started
	Cleared bool   `json:"cleared,omitempty"` // it has been taken down
	// set by all versions that restore a site as parts of its hosts
	PerHost   bool     `json:"apart,omitempty"`
	Committed bool     `json:"going,omitempty"`   // all hosts have staged their parts: there is no way back
	Without   []string `json:"without,omitempty"` // hosts that were left out and have no part
}

// A move moves staged files to their place.
type move struct {
	From string `json:"from"`
	To   string `json:"to"`
	File bool   `json:"file,omitempty"` // a single file, which replaces an existing one
}

// Stage stages everything.
func (r *Restore) Stage(ctx context.Context) error {
	r.Lacked = map[string]int{}
	if err := r.Clear(); err != nil {
		return err
	}
	r.plan = progress{ID: r.ID, From: r.Title, Opened: r.Secrets != nil, SiteDir: r.SiteDir, Twin: r.Twin,
		Replace: r.Replace, Was: r.Was, PerHost: true, Without: r.Without}
	if err := os.MkdirAll(r.staged(), 0o700); err != nil {
		return err
	}
	if err := r.note(); err != nil {
		return err
	}
	if err := r.checkSpace(); err != nil {
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
	return r.finishStaging()
}

// explain returns the problem that the backup could not be staged. The caller removes the staged
// files.
func (r *Restore) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return problem.New(problem.Interrupted, "interrupted; nothing was put in place").At(r.Title)
	}
	var p *problem.Problem
	if errors.As(err, &p) {
		return p
	}
	return problem.New(problem.KindOfWriteError(err), "the backup cannot be staged; nothing was put in place").
		At(r.staged()).
		Because(err)
}

// tree stages one tree.
func (r *Restore) tree(ctx context.Context, t *vault.Tree) error {
	lacks := func(attr string) { r.Lacked[attr]++ }
	if t.Kind == vault.LayerTree {
		if !r.TrustLayers {
			return nil
		}
		for i := range r.Manifest.Layers {
			if l := &r.Manifest.Layers[i]; l.Digest == t.Layer {
				return r.Store.Adopt(ctx, l, func(tree string) error { return stageTree(ctx, r.Contents, t, tree, r.Saw, lacks) })
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
	// Record it first, because staging may take long and the next run must know of it after a kill.
	if to != "" {
		r.plan.Moves = append(r.plan.Moves, move{From: at, To: to})
		if err := r.note(); err != nil {
			return err
		}
	}
	return stageTree(ctx, r.Contents, t, at, r.Saw, lacks)
}

// secret stages a secret.
func (r *Restore) secret(name string, content []byte) error {
	at, to := r.staged("secret", name), ""
	switch part, rest, _ := splitFirst(name); part {
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

// releases stages the host's record of releases. It keeps only what was live: operations in
// progress on the former host are not in progress here, and the nodes of former releases are not
// restored.
func (r *Restore) releases() error {
	if len(r.Manifest.Releases) == 0 {
		return nil
	}
	known, err := r.Manifest.ReadReleases()
	if err != nil {
		return r.damaged("its record of releases", err)
	}
	known.Switch, known.Trial, known.Former = nil, nil, nil
	at := r.staged("releases.json")
	r.plan.Moves = append(r.plan.Moves, move{at, filepath.Join(r.Dirs.Site(r.Key), "releases.json"), true})
	return host.WriteJSON(at, 0o644, known)
}

// finishStaging brings everything to disk and records that it is staged.
func (r *Restore) finishStaging() error {
	if err := host.WriteJSON(r.staged(stagedManifest), 0o600, r.Manifest); err != nil {
		return err
	}
	if err := volume.Sync(r.staged()); err != nil {
		return err
	}
	r.plan.Staged = true
	return r.note()
}

// Conflicts returns existing directories outside the site's state directory that would be replaced.
func (r *Restore) Conflicts() []string {
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

// LayersToRebuild returns the titles of layers that are in the backup, but will be built from their
// recipes.
func (r *Restore) LayersToRebuild() []string {
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
