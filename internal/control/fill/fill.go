// Package fill fills the volumes of a twin with the output of a user's program. The program runs on
// the control host, wherever the volumes are.
package fill

import (
	"context"
	"os"
	"path/filepath"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/plan/place"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// IsProgram reports whether how, the initial content of volumes, is the path of a program.
func IsProgram(how string) bool { return how != site.CopyEmpty && how != site.CopySnapshot }

// Validate returns an error if how is neither a known keyword nor an executable program. It is
// called before anything is created.
func Validate(how string) error {
	if !IsProgram(how) {
		return nil
	}
	if info, err := os.Stat(how); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return problem.New(problem.Usage, "--volumes %s: no such executable file", how).
			Try("use empty, snapshot, or the path of a script")
	}
	return nil
}

// fillAll runs a program that fills the volumes of a twin, one after the other. It calls tell for
// everything that could not be put into the volumes.
func fillAll(ctx context.Context, program string, f *apply.Fleet, dirs host.Dirs, s *site.Site,
	tell func(left string)) error {
	seen, err := f.Observe(ctx)
	if err != nil {
		return err
	}
	placed, err := place.Assign(s, seen)
	if err != nil {
		return err
	}
	volumes, err := volumesOf(placed)
	if err != nil {
		return err
	}
	for _, d := range volumes {
		n, _ := placed.Node(d.Node)
		h, ok := f.Host(n.Host)
		if !ok {
			return problem.New(problem.Failed, "the state of host %s, on which node %s is placed, is unknown", n.Host, n.Name).
				Try("check that it answers: orrery host check")
		}
		var left []string
		if h.Local() {
			err = fillLocal(ctx, program, d, d.At(dirs, s.Key()))
		} else {
			left, err = fillRemote(ctx, program, h, d)
		}
		if err != nil {
			return err
		}
		for _, what := range left {
			tell("volume " + d.Mount.Volume + " of " + d.Node + ": " + what)
		}
	}
	return nil
}

// fillLocal runs a program that fills a volume on this machine, in place.
func fillLocal(ctx context.Context, program string, d apply.Directory, dir string) error {
	if err := tree.RemoveAll(dir); err != nil { // a killed run may have left an incomplete volume
		return err
	}
	return createFilled(ctx, program, d, dir)
}

// volumesOf returns the volumes of a twin's nodes, in the order in which a program fills them.
func volumesOf(twin *site.Site) (all []apply.Directory, err error) {
	maker := spec.NewBuilder(twin)
	for i := range twin.Nodes {
		n := &twin.Nodes[i]
		spelt, err := maker.Node(n)
		if err != nil {
			return nil, err
		}
		for _, m := range spelt.Mounts {
			all = append(all, apply.Directory{Node: n.Name, Mount: m})
		}
	}
	return all, nil
}

// createFilled creates a directory and runs a program that fills it.
func createFilled(ctx context.Context, program string, d apply.Directory, dir string) error {
	path, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := (host.Local{Name: "host"}).Run(ctx,
		host.Command{Args: []string{path, d.Mount.Volume, d.Node, dir}}); err != nil {
		return problem.New(problem.Failed, "script %s did not fill volume %s of node %s", program, d.Mount.Volume,
			d.Node).Because(err).
			Try("its arguments are the volume, the node and the directory")
	}
	return nil
}
