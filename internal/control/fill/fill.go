// Package fill gives the volumes of a twin what they begin with: copies of those of the original, or what a program of the user's makes.
package fill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"orrery/internal/control/here"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
	"orrery/internal/volume"
)

// A Filling is what volumes of a twin are to begin with.
type Filling struct {
	Dirs           host.Dirs
	From           here.Near // the machine of both
	Original, Twin *site.Site
	How            string            // site.Snapshot, or the path of a program
	Tell           func(text string) // tells what is not in a copy
}

// Possible tells, before anything is made, that what volumes are to begin with is no program.
func Possible(how string) error {
	if how == site.Empty || how == site.Snapshot {
		return nil
	}
	if info, err := os.Stat(how); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return problem.New(problem.Usage, "--volumes %s: there is no such program", how).Try("empty, snapshot, or the path of a script")
	}
	return nil
}

// Do fills the volumes.
func (f Filling) Do(ctx context.Context) error {
	maker, of := spec.NewMaker(f.Twin), spec.NewMaker(f.Original)
	for i := range f.Twin.Nodes {
		n := &f.Twin.Nodes[i]
		spelt, err := maker.Node(n)
		if err != nil {
			return err
		}
		for _, m := range spelt.Mounts {
			at := volume.Path(f.Dirs, f.Twin.Key(), n.Name, m)
			if f.How != site.Snapshot {
				err = seed(ctx, f.How, m.Volume, n.Name, at)
			} else {
				err = f.snapshotVolume(ctx, of, n, m, at)
			}
			if err != nil {
				return err
			}
		}
	}
	if f.How == site.Snapshot { // data may be of use only with the secrets that were made for it
		return f.copySecrets(f.Original.Key(), f.Twin.Key())
	}
	return nil
}

// snapshotVolume copies a volume of the original, whose writers stand still meanwhile.
func (f Filling) snapshotVolume(ctx context.Context, of *spec.Maker, n *site.Node, m spec.Mount, to string) error {
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
		from := volume.Path(f.Dirs, of.Site.Key(), name, theirs)
		if _, err := os.Stat(from); err != nil {
			continue
		}
		if _, err := os.Stat(to); err == nil { // copied by a run that was killed: a copy is whole or not there
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		made, err := volume.CloneLive(ctx, from, to, f.From.Still(from))
		if err != nil {
			return err
		}
		for _, what := range made.Left {
			f.Tell(fmt.Sprintf("Not in the twin's volume %s of %s: %s", m.Volume, name, what))
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
func (f Filling) copySecrets(from, to string) error {
	entries, err := os.ReadDir(f.Dirs.Secrets(from))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(f.Dirs.Secrets(from), e.Name()))
		if err != nil {
			return err
		}
		if err := host.WriteFile(host.File{Path: filepath.Join(f.Dirs.Secrets(to), e.Name()), Content: text, Mode: 0o600}); err != nil {
			return fmt.Errorf("secret %s: %w", e.Name(), err)
		}
	}
	return nil
}
