package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/apply/local"
	"orrery/internal/host"
	"orrery/internal/host/later"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/site/twin"
	"orrery/internal/tree"
	"orrery/internal/volume"
)

func (a *app) twinCreate() *cobra.Command {
	var only []string
	var scale, volumes, release string
	var expires time.Duration
	var o twin.Options
	c := &cobra.Command{
		Use:   "create SITE TWIN",
		Short: "Make a twin of a site and bring it up",
		Long: `Makes a twin of a site, which is given by its directory or, if it is up here, by its name, and brings it up. Roles and nodes that name a
simulator ("simulated_by") have that instead. Nothing leads out of a twin unless --nat is given; nothing of it reaches the original.`,
		Example: "  orrery twin create karoo dev1 --scale cpus=0.5,memory=0.5 --expires 8h",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := needRoot(); err != nil {
				return err
			}
			original, dir, err := a.original(args[0])
			if err != nil {
				return err
			}
			o.Name = args[1]
			if o.Owner == "" {
				o.Owner = who()
			}
			if err := scaled(&o, scale); err != nil {
				return err
			}
			if release != "" {
				if o.Release, err = releaseNumber(original, release); err != nil {
					return err
				}
			}
			if o.Only, err = chosenNames(original, only); err != nil {
				return err
			}
			if volumes != site.Empty && volumes != site.Snapshot {
				if volumes, err = filepath.Abs(volumes); err != nil { // whoever fills them may be elsewhere
					return err
				}
			}
			r := twinRecord{Site: original.Name, Dir: dir, Options: o, Volumes: volumes, Created: time.Now().UTC().Truncate(time.Second)}
			if expires > 0 {
				r.Expires = r.Created.Add(expires)
			}
			if err := a.grant(original, &r); err != nil {
				return err
			}
			if err := seedable(volumes); err != nil {
				return err
			}
			return a.createTwin(c.Context(), r)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&only, "only", nil, "only the nodes that this `selector` means; may be repeated")
	f.StringVar(&scale, "scale", "", "share of the limits of nodes, as in cpus=0.5,memory=0.5")
	f.StringVar(&volumes, "volumes", site.Empty, `what volumes begin with: "empty", "snapshot" of the original's, or the path of a script, called with volume, node and directory`)
	f.StringVar(&release, "release", "", `the site as this release makes it; "next": the highest`)
	f.StringVar(&o.Owner, "owner", "", "to whom it belongs (default: you)")
	f.DurationVar(&expires, "expires", 0, "destroy it after this time")
	f.BoolVar(&o.Collapse, "collapse", false, "all roles on one node")
	f.BoolVar(&o.NAT, "nat", false, "let its nodes reach the outside")
	return c
}

// seedable tells, before anything is made, that what volumes are to begin with is no program.
func seedable(how string) error {
	if how == site.Empty || how == site.Snapshot {
		return nil
	}
	if info, err := os.Stat(how); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return problem.New(problem.Usage, "--volumes %s: no program is there that could be run", how).Try("empty, snapshot, or the path of a script")
	}
	return nil
}

// scaled reads --scale.
func scaled(o *twin.Options, text string) error {
	if text == "" {
		return nil
	}
	for _, part := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		factor, err := strconv.ParseFloat(value, 64)
		to := map[string]*float64{"cpus": &o.Cpus, "memory": &o.Memory}[name]
		if to == nil || err != nil || factor <= 0 {
			return problem.New(problem.Usage, "--scale %s", text).Try("such as cpus=0.5,memory=0.5")
		}
		*to = factor
	}
	return nil
}

func chosenNames(s *site.Site, selectors []string) ([]string, error) {
	chosen, err := choose(s, selectors)
	if err != nil || chosen == nil {
		return nil, err
	}
	var names []string
	for i := range s.Nodes {
		if chosen[s.Nodes[i].Name] {
			names = append(names, s.Nodes[i].Name)
		}
	}
	return names, nil
}

// createTwin makes a twin, fills its volumes and brings it up. What is known of it is written first, so that a run
// that is killed leaves a twin that can be brought up or destroyed.
func (a *app) createTwin(ctx context.Context, r twinRecord) error {
	b := *a
	b.twin, b.siteDir, b.force = r.Options.Name, r.Dir, true // whoever makes it for somebody else brings it up
	if was, err := a.readTwin(r.key()); err == nil {
		return problem.New(problem.Mistake, "site %s has a twin %s already, of %s", r.Site, was.Options.Name, was.Options.Owner).
			Try("orrery --twin %s up brings it up; orrery twin destroy %s ends it", was.Options.Name, was.Options.Name)
	}
	original, _, err := a.original(r.Dir)
	if err != nil {
		return err
	}
	s, err := twin.Of(original, r.Options) // whatever is wrong is said before anything is written
	if err != nil {
		return err
	}
	if err := b.writeTwin(r); err != nil {
		return err
	}
	if !r.Expires.IsZero() {
		if err := b.expire(r); err != nil {
			return err
		}
	}
	if err := a.note(original, a.command, "twin "+r.Options.Name); err != nil {
		return err
	}
	return b.up(ctx, s, nil, manner{parallel: defaultParallel()})
}

// expire lets a twin be destroyed when its time is over.
func (a *app) expire(r twinRecord) error {
	return a.later(later.Call{
		Name: expiryName(r.key()), After: time.Until(r.Expires), Args: []string{"--force", "-C", r.Dir, "twin", "destroy", r.Options.Name, "--wait"},
	})
}

// fillOnce gives the volumes of a twin what they begin with, before it is up for the first time.
func (a *app) fillOnce(ctx context.Context, s *site.Site) error {
	if s.Twin == "" {
		return nil
	}
	r, err := a.readTwin(s.Key())
	if err != nil || r.Filled {
		return err
	}
	if r.Volumes != site.Empty {
		if err := a.fill(ctx, s.Original, s, r.Volumes); err != nil {
			return err
		}
	}
	r.Filled = true
	return a.writeTwin(r)
}

func (a *app) fill(ctx context.Context, original, s *site.Site, how string) error {
	from, err := a.here(original)
	if err != nil {
		return err
	}
	maker, of := spec.NewMaker(s), spec.NewMaker(original)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		spelt, err := maker.Node(n)
		if err != nil {
			return err
		}
		for _, m := range spelt.Mounts {
			at := volume.Path(a.dirs, s.Key(), n.Name, m)
			if how != site.Snapshot {
				err = seed(ctx, how, m.Volume, n.Name, at)
			} else {
				err = a.snapshotVolume(ctx, from, of, n, m, at)
			}
			if err != nil {
				return err
			}
		}
	}
	if how == site.Snapshot { // data may be of use only with the secrets that were made for it
		return a.copySecrets(original.Key(), s.Key())
	}
	return nil
}

// snapshotVolume copies a volume of the original, whose writers stand still meanwhile.
func (a *app) snapshotVolume(ctx context.Context, h *local.Host, of *spec.Maker, n *site.Node, m spec.Mount, to string) error {
	name := n.Name
	declared, ok := of.Site.Node(name)
	if !ok {
		return nil
	}
	spelt, err := of.Node(declared)
	if err != nil {
		return err
	}
	for _, theirs := range spelt.Mounts {
		if theirs.Volume != m.Volume || theirs.NFS != "" {
			continue
		}
		from := volume.Path(h.Dirs, of.Site.Key(), name, theirs)
		if _, err := os.Stat(from); err != nil {
			continue
		}
		if _, err := os.Stat(to); err == nil { // copied by a run that was killed: a copy is whole or not there
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		made, err := volume.CloneLive(ctx, from, to, h.Still(from))
		if err != nil {
			return err
		}
		for _, what := range made.Left {
			fmt.Fprintf(a.out, "Not in the twin's volume %s of %s: %s.\n", m.Volume, name, what)
		}
	}
	return nil
}

// seed lets a script fill a volume.
func seed(ctx context.Context, script, name, node, dir string) error {
	path, err := filepath.Abs(script)
	if err != nil {
		return err
	}
	if err := tree.RemoveAll(dir); err != nil { // what a run that was killed left is not whole
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := (host.Local{Name: "host"}).Run(ctx, host.Command{Args: []string{path, name, node, dir}}); err != nil {
		return problem.New(problem.Failed, "the script %s did not fill volume %s of node %s", script, name, node).Because(err).
			Try("it is called with the volume, the node and the directory; the twin is there and can be destroyed")
	}
	return nil
}

// copySecrets gives a twin the secrets that were generated for the original.
func (a *app) copySecrets(from, to string) error {
	entries, err := os.ReadDir(a.dirs.Secrets(from))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(a.dirs.Secrets(from), e.Name()))
		if err != nil {
			return err
		}
		if err := host.WriteFile(host.File{Path: filepath.Join(a.dirs.Secrets(to), e.Name()), Content: text, Mode: 0o600}); err != nil {
			return fmt.Errorf("secret %s: %w", e.Name(), err)
		}
	}
	return nil
}
