// Package fill gives the volumes of a twin what a program of the user's makes.
package fill

import (
	"context"
	"os"
	"path/filepath"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
	"orrery/internal/volume"
)

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

// By lets a script fill the volumes of a twin on this machine.
func By(ctx context.Context, script string, dirs host.Dirs, twin *site.Site) error {
	maker := spec.NewMaker(twin)
	for i := range twin.Nodes {
		n := &twin.Nodes[i]
		spelt, err := maker.Node(n)
		if err != nil {
			return err
		}
		for _, m := range spelt.Mounts {
			if err := seed(ctx, script, m.Volume, n.Name, volume.Path(dirs, twin.Key(), n.Name, m)); err != nil {
				return err
			}
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
