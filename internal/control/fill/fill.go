// Package fill fills the volumes of a twin with the output of a user's program, which runs on the
// control host. The program runs on this machine, wherever the volumes are.
package fill

import (
	"context"
	"os"
	"path/filepath"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/site/twin"
	"orrery/internal/tree"
)

// Program reports whether what volumes are to begin with is a program.
func Program(how string) bool { return how != site.Empty && how != site.Snapshot }

// Possible tells, before anything is made, that what volumes are to begin with is no program.
func Possible(how string) error {
	if !Program(how) {
		return nil
	}
	if info, err := os.Stat(how); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return problem.New(problem.Usage, "--volumes %s: there is no such program", how).Try("empty, snapshot, or the path of a script")
	}
	return nil
}

// By lets the program that is on record fill the volumes of a twin on its hosts, and these take that down. It tells what was made and
// is not in them.
func By(ctx context.Context, f *apply.Fleet, dirs host.Dirs, s *site.Site, r twin.Record, tell func(left string)) error {
	fill := func() error { return far(ctx, f, s, r, tell) }
	if f.Own() { // the volumes are here, and need not be sent
		fill = func() error { return here(ctx, r.Volumes, dirs, s) }
	}
	if err := fill(); err != nil {
		return err
	}
	r.Filled = true
	return f.Each(func(_ int, h *apply.Steered) error { return h.Twins.Save(ctx, r) })
}

// here lets a program fill the volumes of a twin on this machine.
func here(ctx context.Context, program string, dirs host.Dirs, twin *site.Site) error {
	all, err := volumes(twin)
	if err != nil {
		return err
	}
	for _, d := range all {
		dir := d.At(dirs, twin.Key())
		if err := tree.RemoveAll(dir); err != nil { // what a run that was killed left is not whole
			return err
		}
		if err := made(ctx, program, d, dir); err != nil {
			return problem.New(problem.Failed, "the volumes of twin %s are not filled", twin.Twin).Because(err).
				Try("orrery --twin %s up goes on once the cause is mended; orrery twin destroy %[1]s ends it", twin.Twin)
		}
	}
	return nil
}

// volumes returns those of the nodes of a twin, in the order in which a program fills them.
func volumes(twin *site.Site) (all []apply.Directory, err error) {
	maker := spec.NewMaker(twin)
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

// made lets a program fill a directory, which is made for it.
func made(ctx context.Context, program string, d apply.Directory, dir string) error {
	path, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := (host.Local{Name: "host"}).Run(ctx, host.Command{Args: []string{path, d.Mount.Volume, d.Node, dir}}); err != nil {
		return problem.New(problem.Failed, "the script %s did not fill volume %s of node %s", program, d.Mount.Volume, d.Node).Because(err).
			Try("it is called with the volume, the node and the directory")
	}
	return nil
}
