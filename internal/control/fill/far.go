package fill

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"

	"orrery/internal/apply"
	"orrery/internal/apply/filling"
	"orrery/internal/aside"
	"orrery/internal/plan/place"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/twin"
	"orrery/internal/treesync"
)

// far lets the program fill the volumes of a twin on other hosts: one volume after the other is made in a directory of this machine, and sent to the host of the node. It tells what was made and has
// not been sent.
func far(ctx context.Context, f *apply.Fleet, s *site.Site, r twin.Record, tell func(left string)) error {
	seen, err := f.Observe(ctx)
	if err != nil {
		return err
	}
	placed, err := place.Place(s, seen)
	if err != nil {
		return err
	}
	all, err := volumes(placed)
	if err != nil {
		return err
	}
	for _, d := range all {
		n, _ := placed.Node(d.Node)
		h, ok := f.Host(n.Host)
		if !ok {
			return problem.New(problem.Failed, "nothing is known of host %s, to which node %s comes", n.Host, n.Name).Try("see that it answers: orrery host check")
		}
		left, err := one(ctx, r.Volumes, h, d)
		if err != nil {
			return problem.New(problem.Failed, "the volumes of twin %s are not filled", r.Options.Name).Because(err).
				Try("mend the cause; orrery twin destroy %s, and create it anew", r.Options.Name)
		}
		for _, what := range left {
			tell("volume " + d.Mount.Volume + " of " + d.Node + ": " + what)
		}
	}
	return nil
}

// one makes a volume here, and sends it to its host.
func one(ctx context.Context, program string, h *apply.Steered, d apply.Directory) (left []string, err error) {
	in := cmp.Or(os.Getenv("TMPDIR"), "/var/tmp") // /tmp may be memory
	work, err := aside.New(in)
	if err != nil {
		return nil, problem.New(problem.Failed, "a volume cannot be made on this machine before it is sent").At(in).Because(err).Try("TMPDIR names another directory")
	}
	defer work.Remove()
	dir := filepath.Join(work.Path, d.Mount.Volume)
	if err := made(ctx, program, d, dir); err != nil {
		return nil, err
	}
	err = treesync.Pipe(ctx, func(way io.ReadWriter) error {
		along, err := treesync.NewStream(way)
		if err != nil {
			return err
		}
		sent, err := new(treesync.Sender).Send(ctx, along, []treesync.Source{{Name: filling.Tree, Dir: dir}}, true)
		if err == nil {
			left = sent.Left
		}
		return err
	}, func(way io.ReadWriter) error { return h.Volumes.Receive(ctx, d, way) })
	if err != nil {
		err = problem.New(problem.Failed, "volume %s of node %s has not come to its host", d.Mount.Volume, d.Node).At("host " + h.Name).Because(err)
	}
	return left, err
}

// Unfilled says that the volumes of a twin on several hosts have not been filled to the end. What the hosts have on record of the program is their word: it names nothing that is run here.
func Unfilled(r *twin.Record) error {
	return problem.New(problem.Unable, "twin %s is on several hosts, and its volumes were not filled to the end; which program does that, only orrery twin create takes from you", r.Options.Name).
		Try("orrery twin destroy %s, and create it anew", r.Options.Name)
}
