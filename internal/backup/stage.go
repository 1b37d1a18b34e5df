package backup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"filippo.io/age"

	"orrery/internal/backup/vault"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/problem"
	"orrery/internal/tree"
	"orrery/internal/volume"
)

// A Restore puts a backup in place. First all of it is laid down aside, where nothing sees it; then it is moved to where it belongs,
// each tree by one rename; private layers come last, each when its node has been made. A run that is killed has laid down all or not, and
// the next one goes on from there.
type Restore struct {
	From     vault.Vault
	ID       string
	Title    string // how a user names the backup
	Manifest *vault.Manifest

	Dirs    host.Dirs
	Store   *image.Store
	Key     string // under which the site will be kept here
	SiteDir string // where the site directory will be
	Twin    bool   // it is restored as a twin: volumes are with the host's state
	// TrustLayers: layers in the backup come into the store, where all sites of the host find them by the digest of their recipe. That
	// they are what the recipe makes nothing but the word of whoever made the backup says.
	TrustLayers bool
	Replace     bool // what is in the way goes
	Was         bool // the site is on its hosts, and is taken down once all is laid down
	With        []age.Identity
	Saw         func(bytes int64)

	Without []string // hosts that have no part of it, because they were left out
	// Apart: it is the part of one of several hosts, with what is in it from elsewhere than From, and with secrets that somebody else has decrypted.
	Apart *Apart

	Lacked map[string]int // attributes that a file system here does not take, and how often

	plan progress
}

// progress is kept beside what is laid down: how far it has come, and, once all is laid down, what is needed to go on without the backup.
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

// Aside is where a backup is laid down before it is moved to its place. While it is there, a restore is under way or was interrupted.
func Aside(dirs host.Dirs, key string) string { return filepath.Join(dirs.Site(key), "restore") }

func (r *Restore) aside(parts ...string) string {
	return filepath.Join(append([]string{Aside(r.Dirs, r.Key)}, parts...)...)
}

// Stage lays all down.
func (r *Restore) Stage(ctx context.Context) error {
	r.Lacked = map[string]int{}
	if err := r.Clear(); err != nil {
		return err
	}
	r.plan = progress{ID: r.ID, From: r.Title, Opened: r.opens(), SiteDir: r.SiteDir, Twin: r.Twin, Replace: r.Replace, Was: r.Was, Apart: r.Apart != nil, Without: r.Without}
	secrets, err := r.open()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.aside(), 0o700); err != nil {
		return err
	}
	if err := r.note(); err != nil {
		return err
	}
	if err := r.room(ctx); err != nil {
		return errors.Join(err, r.Clear())
	}
	from := r.contents()
	for i := range r.Manifest.Trees {
		if err := r.tree(ctx, from, &r.Manifest.Trees[i]); err != nil {
			err = r.explain(ctx, err)
			return errors.Join(err, r.Clear())
		}
	}
	for _, name := range secrets.Names() {
		if err := r.secret(name, secrets[name]); err != nil {
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
		return problem.New(problem.Interrupted, "interrupted; nothing was put in place").At(r.source().Where())
	}
	var p *problem.Problem
	if errors.As(err, &p) {
		return p
	}
	return problem.New(problem.OfWriting(err), "the backup cannot be laid down; nothing was put in place").At(r.aside()).Because(err)
}

// tree lays down one tree.
func (r *Restore) tree(ctx context.Context, from Contents, t *vault.Tree) error {
	lacks := func(attr string) { r.Lacked[attr]++ }
	if t.Kind == vault.LayerTree {
		if !r.TrustLayers {
			return nil
		}
		for i := range r.Manifest.Layers {
			if l := &r.Manifest.Layers[i]; l.Digest == t.Layer {
				return r.Store.Adopt(ctx, l, func(tree string) error { return lay(ctx, from, t, tree, r.Saw, lacks) })
			}
		}
		return vault.Damaged(r.source(), "layer "+t.Layer, vault.ErrMissing)
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
	return lay(ctx, from, t, at, r.Saw, lacks)
}

// places tells where a tree is laid down, and where it is moved to; private layers are moved when their nodes have been made.
func (r *Restore) places(t *vault.Tree) (at, to string) {
	switch t.Kind {
	case vault.PrivateTree:
		return r.private(t.ID), ""
	case vault.SiteTree:
		if tree.Exists(r.SiteDir) && !empty(r.SiteDir) {
			return "", "" // it is the same
		}
		return beside(r.SiteDir), r.SiteDir
	case vault.VolumeTree:
		if to = r.volume(t); t.Path != "" && !r.Twin {
			return beside(to), to
		}
	case vault.ReleaseTree:
		to = r.Dirs.Release(r.Key, t.Number)
	case vault.SnapshotTree:
		if r.Twin {
			return "", "" // they tell of the original's directories
		}
	} // a snapshot stays there until it is fitted
	return r.aside("trees", t.Name), to
}

func (r *Restore) private(id int) string { return r.aside("private", strconv.Itoa(id)) }

// beside is a name for what will be in a place: on the same file system, so that a rename takes it there.
func beside(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-restore")
}

func empty(dir string) bool {
	names, err := os.ReadDir(dir)
	return err == nil && len(names) == 0
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

// releases lays down what the host knew of releases. What was under way on the other host is not under way here, and
// the nodes of former releases do not come back: only what was live does.
func (r *Restore) releases() error {
	if len(r.Manifest.Releases) == 0 {
		return nil
	}
	known, err := r.Manifest.ReadReleases()
	if err != nil {
		return vault.Damaged(r.From, "what it says of releases", err)
	}
	known.Switch, known.Trial, known.Former = nil, nil, nil
	at := r.aside("releases.json")
	r.plan.Moves = append(r.plan.Moves, move{at, filepath.Join(r.Dirs.Site(r.Key), "releases.json"), true})
	return host.WriteJSON(at, 0o644, known)
}

func (r *Restore) note() error {
	if err := host.WriteJSON(r.aside("restore.json"), 0o600, r.plan); err != nil {
		return err
	}
	dir, err := os.Open(r.aside())
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
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

// open decrypts the secrets, if there is something to do so with.
func (r *Restore) open() (vault.Secrets, error) {
	if r.Apart != nil {
		return r.Apart.Secrets, nil
	}
	if len(r.With) == 0 {
		return nil, nil
	}
	if r.Manifest.Secrets == nil {
		return nil, problem.New(problem.Usage, "there are no secrets in this backup to be decrypted").At(r.From.Where()).Try("leave the key or passphrase out")
	}
	all, err := vault.Unseal(vault.NewPieces(r.From).Stream(r.Manifest.Secrets.Pieces), r.With)
	if err != nil {
		return nil, problem.New(problem.Refused, "the secrets cannot be decrypted with this key or passphrase; nothing was done").At(r.From.Where()).Because(err).
			Try("give the one with which the backup was made")
	}
	return all, nil
}

// Clear removes what an interrupted restore has laid down.
func (r *Restore) Clear() error { return Clear(r.Dirs, r.Key) }

// Clear removes what an interrupted restore of a site has laid down and not moved to its place.
func Clear(dirs host.Dirs, key string) error {
	at := Aside(dirs, key)
	p, err := readProgress(dirs, key)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for _, m := range p.Moves {
		if m.From == beside(m.To) || filepath.Dir(m.From) == at || within(m.From, at) {
			err = errors.Join(err, tree.RemoveAll(m.From))
		}
	}
	if err != nil { // the record of what is left stays with it
		return err
	}
	return tree.RemoveAll(at)
}
