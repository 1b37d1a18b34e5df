package layers

import (
	"context"
	"path/filepath"

	"orrery/internal/control"
	"orrery/internal/control/hosts"
	"orrery/internal/control/pkgmirror"
	"orrery/internal/image"
	"orrery/internal/image/access"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// PullOptions say where the package mirror is, and what else to do with it.
type PullOptions struct {
	Dir   string // "" for [mirror] of the site, or else a directory in the state of this host
	Prune bool   // remove what no layer of this site needs
}

// Pulled is the result of getting packages.
type Pulled struct {
	pkgmirror.Result
	Site      string // name of the site
	Dir       string // directory of the mirror
	Needless  bool   // the site has no nodes, so it needs no packages
	Apt, PyPI string // the lines that [mirror] in the site file lacks to use the mirror, or ""
}

// Pull gets the exact packages of all layers that a site, its releases and its twins need. It
// builds missing layers first.
func Pull(ctx context.Context, c *control.Session, o PullOptions) (*Pulled, error) {
	if err := c.Allowed(); err != nil {
		return nil, err
	}
	s, err := c.Load()
	if err != nil {
		return nil, err
	}
	dir, err := mirrorAt(c, s, o.Dir)
	if err != nil {
		return nil, err
	}
	if _, err := hosts.HashImages(ctx, s); err != nil {
		return nil, err
	}
	// Use the layers that are built from the archives themselves. Layers built from the mirror
	// cannot show what belongs into it.
	upstream := *s
	upstream.Mirror = pkgmirror.Upstream(s.Mirror, dir)
	recipes, err := allRecipes(&upstream)
	if err != nil {
		return nil, err
	}
	if len(recipes) == 0 {
		return &Pulled{Site: s.Name, Needless: true}, nil
	}
	if err := buildMissing(ctx, c, &upstream, recipes); err != nil {
		return nil, err
	}
	store := image.Open(c.Dirs.State)
	layers, err := contents(store, recipes)
	if err != nil {
		return nil, err
	}
	log, err := store.OpenLog("mirror")
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // what a log lacks at its end is no reason to fail
	say := func(text string) { c.Watcher.Event(control.Event{Kind: control.Progress, Site: s.Key(), Text: text}) }
	m := &pkgmirror.Mirror{Dir: dir, Keys: filepath.Join(c.Dirs.State, "mirror-key"), Store: store,
		From: upstream.Mirror, Log: log, Progress: say}
	done, err := m.Pull(ctx, layers, o.Prune)
	if err != nil {
		return nil, err
	}
	pulled := &Pulled{Result: *done, Site: s.Name, Dir: dir}
	if apt, pypi := pkgmirror.URLs(dir); s.Mirror.Apt != apt || s.Mirror.PyPI != pypi {
		pulled.Apt, pulled.PyPI = apt, pypi
	}
	return pulled, nil
}

// mirrorAt returns the directory of the mirror. It is the named one, else that of [mirror], else
// one in the state of this host.
func mirrorAt(c *control.Session, s *site.Site, named string) (string, error) {
	if named != "" {
		return filepath.Abs(named)
	}
	if dir, ok := access.LocalDir(s.Mirror.Apt); ok {
		if filepath.Base(dir) != "apt" {
			return "", problem.New(problem.Usage, "[mirror] apt = %q does not have the layout of orrery mirror pull",
				s.Mirror.Apt).
				Try("name the directory: orrery mirror pull DIRECTORY")
		}
		return filepath.Dir(dir), nil
	}
	return filepath.Join(c.Dirs.State, "mirror"), nil
}

// contents returns what is recorded of layers.
func contents(store *image.Store, recipes []*spec.Layer) ([]*pkgmirror.Layer, error) {
	bases := map[string]*pkgmirror.Layer{}
	var all []*pkgmirror.Layer
	for _, recipe := range recipes {
		r, err := store.Record(recipe.Digest)
		if err != nil {
			return nil, err
		}
		l := &pkgmirror.Layer{Digest: r.Digest, Title: r.Title, Debian: r.Packages, Python: r.Python, Pins: recipe.Pins,
			Runs: image.PythonVersion(store.Tree(r.Digest))}
		if recipe.IsBase() {
			l.Suite, l.Components, l.Imported = r.Suite(store.Tree(r.Digest)), recipe.Image.Components, recipe.Image.Import != ""
			bases[r.Digest] = l
		} else {
			l.Base = bases[r.Base]
			l.Suite, l.Components = l.Base.Suite, l.Base.Components
		}
		if l.Suite == "" {
			return nil, problem.New(problem.Unable,
				"image %s does not name the release of its distribution: no mirror can be created for it", l.Title).
				Try("only images with /etc/os-release and VERSION_CODENAME can be mirrored")
		}
		all = append(all, l)
	}
	return all, nil
}
