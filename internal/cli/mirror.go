package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"orrery/internal/control"
	"orrery/internal/image"
	"orrery/internal/mirror"
	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/site/twin"
)

func (a *app) mirrorVerb() *cobra.Command {
	c := &cobra.Command{
		Use: "mirror", Short: "Mirror the packages that the site needs, to build without the internet",
		Args: someVerb, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.mirrorPull())
	return c
}

func (a *app) mirrorPull() *cobra.Command {
	var prune bool
	c := &cobra.Command{
		Use:   "pull [DIRECTORY]",
		Short: "Download the exact packages of all layers that the site and its releases need",
		Long: `Downloads the Debian and Python packages in the layers of the site, its releases and its twins, in exactly these versions, into an archive for apt
and an index for pip. Missing layers are built first. Packages that are already there and intact are not downloaded again. [mirror] in
site.toml can then point at the directory.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := control.NeedRoot(); err != nil {
				return err
			}
			s, err := a.Load()
			if err != nil {
				return err
			}
			dir, err := a.mirrorDir(s, args)
			if err != nil {
				return err
			}
			return a.pull(c.Context(), s, dir, prune)
		},
	}
	c.Flags().BoolVar(&prune, "prune", false, "remove what no layer of this site needs")
	return c
}

// mirrorDir gives the directory that is meant: the one that is named, else that of [mirror], else one with the state of this host.
func (a *app) mirrorDir(s *site.Site, args []string) (string, error) {
	if len(args) == 1 {
		return filepath.Abs(args[0])
	}
	if dir, ok := image.LocalDir(s.Mirror.Apt); ok {
		if filepath.Base(dir) != "apt" {
			return "", problem.New(problem.Usage, "[mirror] apt = %q is not laid out as orrery mirror pull does it", s.Mirror.Apt).
				Try("say which directory: orrery mirror pull DIRECTORY")
		}
		return filepath.Dir(dir), nil
	}
	return filepath.Join(a.Dirs.State, "mirror"), nil
}

func (a *app) pull(ctx context.Context, s *site.Site, dir string, prune bool) error {
	// The layers are those that are made from the archives themselves: what comes out of the mirror cannot tell what belongs into it.
	upstream := *s
	upstream.Mirror = mirror.Upstream(s.Mirror, dir)
	recipes, err := recipes(&upstream)
	if err != nil {
		return err
	}
	if len(recipes) == 0 {
		fmt.Fprintf(a.out, "%s has no nodes, so it needs no packages.\n", s.Name)
		return nil
	}
	if err := a.buildMissing(ctx, &upstream, recipes); err != nil {
		return err
	}
	store := image.Open(a.Dirs.State)
	layers, err := mirrored(store, recipes)
	if err != nil {
		return err
	}
	log, err := store.OpenLog("mirror")
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // what a log lacks at its end is no reason to fail
	say := func(text string) { fmt.Fprintln(a.err, text) }
	m := &mirror.Mirror{Dir: dir, Keys: filepath.Join(a.Dirs.State, "mirror-key"), Store: store, From: upstream.Mirror, Log: log, Say: say}
	done, err := m.Pull(ctx, layers, prune)
	if err != nil {
		return err
	}
	a.sayPulled(dir, done)
	if apt, pypi := mirror.URLs(dir); s.Mirror.Apt != apt || s.Mirror.PyPI != pypi {
		fmt.Fprintf(a.out, "To build from it, say in site.toml:\n\n[mirror]\napt  = %q\npypi = %q\n", apt, pypi)
	}
	return nil
}

func (a *app) sayPulled(dir string, p *mirror.Pulled) {
	all := phrase.Count(p.Debian, "Debian package") + " and " + phrase.Count(p.Python, "Python package")
	if p.New() {
		fmt.Fprintf(a.out, "%s: %s; %d were fetched and %d copied from this host's cache, %d MiB.\n", dir, all, p.Fetched, p.Cached, p.Bytes>>20)
	} else {
		fmt.Fprintf(a.out, "%s: nothing to fetch: %s are there.\n", dir, all)
	}
	if p.Removed > 0 {
		fmt.Fprintf(a.out, "%s that no layer needs removed.\n", phrase.Count(p.Removed, "file"))
	}
}

// recipes gives the layers of the site as it is declared, as its releases make it, and as its twins are: bases before what stands on them.
func recipes(s *site.Site) ([]*spec.Layer, error) {
	views := []*site.Site{s}
	for _, r := range s.Releases {
		made, err := twin.Release(s, r.Number)
		if err != nil {
			return nil, err
		}
		views = append(views, made)
	}
	if len(s.Nodes) > 0 {
		for _, release := range append([]site.Release{{}}, s.Releases...) {
			made, err := twin.Of(s, twin.Options{Name: "mirror", Release: release.Number})
			if err != nil {
				return nil, err
			}
			views = append(views, made)
		}
	}
	var bases, roles []*spec.Layer
	seen := map[string]bool{}
	for _, view := range views {
		maker := spec.NewMaker(view)
		for i := range view.Nodes {
			for _, l := range maker.Layers(&view.Nodes[i]) {
				switch {
				case seen[l.Digest]:
				case l.IsBase():
					bases = append(bases, l)
				default:
					roles = append(roles, l)
				}
				seen[l.Digest] = true
			}
		}
	}
	return append(bases, roles...), nil
}

// buildMissing builds the layers that are not in the store.
func (a *app) buildMissing(ctx context.Context, s *site.Site, recipes []*spec.Layer) error {
	h, err := a.Here(s)
	if err != nil {
		return err
	}
	j := &control.Job{Session: &a.Session, Site: s, Host: h, Plan: func(hosts []observe.Host) (*plan.Plan, error) {
		p := &plan.Plan{Site: s.Name}
		step := map[string]int{}
		for _, l := range recipes {
			if hosts[0].Layers[l.Digest] {
				continue
			}
			var needs []int
			for _, digest := range l.Lower() {
				if below, ok := step[digest]; ok {
					needs = append(needs, below)
				}
			}
			step[l.Digest] = len(p.Steps)
			p.Steps = append(p.Steps, &plan.Step{
				N: len(p.Steps), Kind: plan.BuildLayer, Host: hosts[0].Name, Subject: l.Title, Reason: "not in the store: " + l.Digest, Needs: needs, Layer: l,
			})
		}
		return p, nil
	}}
	_, err = j.Run(ctx)
	return err
}

// mirrored gives what is recorded of layers.
func mirrored(store *image.Store, recipes []*spec.Layer) ([]*mirror.Layer, error) {
	bases := map[string]*mirror.Layer{}
	var all []*mirror.Layer
	for _, recipe := range recipes {
		r, err := store.Record(recipe.Digest)
		if err != nil {
			return nil, err
		}
		l := &mirror.Layer{Digest: r.Digest, Title: r.Title, Debian: r.Packages, Python: r.Python, Pins: recipe.Pins, Runs: store.Python(r.Digest)}
		if recipe.IsBase() {
			l.Suite, l.Components, l.Imported = store.Suite(r), recipe.Image.Components, recipe.Image.Import != ""
			bases[r.Digest] = l
		} else {
			l.Base = bases[r.Base]
			l.Suite, l.Components = l.Base.Suite, l.Base.Components
		}
		if l.Suite == "" {
			return nil, problem.New(problem.Unable, "image %s does not say which release of its distribution it is, so no mirror can be made for it", l.Title).
				Try("only images with /etc/os-release and VERSION_CODENAME can be mirrored")
		}
		all = append(all, l)
	}
	return all, nil
}
