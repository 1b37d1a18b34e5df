package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control/here"
	"orrery/internal/control/register"
	"orrery/internal/host"
	"orrery/internal/host/later"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/site/twin"
	"orrery/internal/tree"
	"orrery/internal/volume"
)

// seedable tells, before anything is made, that what volumes are to begin with is no program.
func seedable(how string) error {
	if how == site.Empty || how == site.Snapshot {
		return nil
	}
	if info, err := os.Stat(how); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return problem.New(problem.Usage, "--volumes %s: there is no such program", how).Try("empty, snapshot, or the path of a script")
	}
	return nil
}

// CreateTwin makes a twin, fills its volumes and brings it up. What is known of it is written first, so that a run
// that is killed leaves a twin that can be brought up or destroyed.
func (c *Session) CreateTwin(ctx context.Context, of register.TwinRecord) (*site.Site, *apply.Result, error) {
	if err := seedable(of.Volumes); err != nil {
		return nil, nil, err
	}
	b := *c
	b.Twin, b.SiteDir, b.Force = of.Options.Name, of.Dir, true // whoever makes it for somebody else brings it up
	if was, err := c.ReadTwin(of.Key()); err == nil {
		return nil, nil, problem.New(problem.Mistake, "site %s already has a twin %s, which belongs to %s", of.Site, was.Options.Name, was.Options.Owner).
			Try("orrery --twin %s up brings it up; orrery twin destroy %s ends it", was.Options.Name, was.Options.Name)
	}
	original, _, err := c.Original(of.Dir)
	if err != nil {
		return nil, nil, err
	}
	s, err := twin.Of(original, of.Options) // whatever is wrong is said before anything is written
	if err != nil {
		return nil, nil, err
	}
	if err := b.WriteTwin(of); err != nil {
		return nil, nil, err
	}
	if !of.Expires.IsZero() {
		if err := b.expire(of); err != nil {
			return nil, nil, err
		}
	}
	if err := c.Note(original, c.Command, "twin "+of.Options.Name); err != nil {
		return nil, nil, err
	}
	r, err := b.up(ctx, s, nil, UpOptions{})
	return s, r, err
}

// expire lets a twin be destroyed when its time is over.
func (c *Session) expire(r register.TwinRecord) error {
	return c.machine().Later(later.Call{
		Name: expiryName(r.Key()), After: time.Until(r.Expires), Args: []string{"--force", "-C", r.Dir, "twin", "destroy", r.Options.Name, "--wait"},
	})
}

// fillOnce gives the volumes of a twin what they begin with, before it is up for the first time.
func (c *Session) fillOnce(ctx context.Context, s *site.Site) error {
	if s.Twin == "" {
		return nil
	}
	r, err := c.ReadTwin(s.Key())
	if err != nil || r.Filled {
		return err
	}
	if r.Volumes != site.Empty {
		if err := c.fill(ctx, s.Original, s, r.Volumes); err != nil {
			return err
		}
	}
	r.Filled = true
	return c.WriteTwin(r)
}

func (c *Session) fill(ctx context.Context, original, s *site.Site, how string) error {
	from, err := c.Here(original)
	if err != nil {
		return err
	}
	near, err := here.Of(from)
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
			at := volume.Path(c.Dirs, s.Key(), n.Name, m)
			if how != site.Snapshot {
				err = seed(ctx, how, m.Volume, n.Name, at)
			} else {
				err = c.snapshotVolume(ctx, near, of, n, m, at)
			}
			if err != nil {
				return err
			}
		}
	}
	if how == site.Snapshot { // data may be of use only with the secrets that were made for it
		return c.copySecrets(original.Key(), s.Key())
	}
	return nil
}

// snapshotVolume copies a volume of the original, whose writers stand still meanwhile.
func (c *Session) snapshotVolume(ctx context.Context, near here.Near, of *spec.Maker, n *site.Node, m spec.Mount, to string) error {
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
		from := volume.Path(c.Dirs, of.Site.Key(), name, theirs)
		if _, err := os.Stat(from); err != nil {
			continue
		}
		if _, err := os.Stat(to); err == nil { // copied by a run that was killed: a copy is whole or not there
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		made, err := volume.CloneLive(ctx, from, to, near.Still(from))
		if err != nil {
			return err
		}
		for _, what := range made.Left {
			c.outcome(of.Site.Key(), "Not in the twin's volume %s of %s: %s", m.Volume, name, what)
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
func (c *Session) copySecrets(from, to string) error {
	entries, err := os.ReadDir(c.Dirs.Secrets(from))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(c.Dirs.Secrets(from), e.Name()))
		if err != nil {
			return err
		}
		if err := host.WriteFile(host.File{Path: filepath.Join(c.Dirs.Secrets(to), e.Name()), Content: text, Mode: 0o600}); err != nil {
			return fmt.Errorf("secret %s: %w", e.Name(), err)
		}
	}
	return nil
}
