package fill

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"

	"orrery/internal/apply"
	"orrery/internal/apply/filling"
	"orrery/internal/host/staging"
	"orrery/internal/problem"
	"orrery/internal/treesync"
)

// fillRemote runs a program that fills a volume on this machine, and sends the volume to its host.
func fillRemote(ctx context.Context, program string, h *apply.HostClient, d apply.Directory) (left []string,
	err error) {
	in := cmp.Or(os.Getenv("TMPDIR"), "/var/tmp") // /tmp may be in memory
	work, err := staging.Create(in)
	if err != nil {
		return nil, problem.New(problem.Failed, "a volume cannot be prepared on this machine").At(in).
			Because(err).Try("set TMPDIR to another directory")
	}
	defer work.Remove()
	dir := filepath.Join(work.Path, d.Mount.Volume)
	if err := createFilled(ctx, program, d, dir); err != nil {
		return nil, err
	}
	err = treesync.Pipe(ctx, func(way io.ReadWriter) error {
		along, err := treesync.NewStream(way)
		if err != nil {
			return err
		}
		done, err := new(treesync.Sender).Send(ctx, along, []treesync.Source{{Name: filling.Tree, Dir: dir}}, true)
		if err == nil {
			left = done.Left
		}
		return err
	}, func(way io.ReadWriter) error { return h.Volumes.Receive(ctx, d, way) })
	if err != nil {
		err = problem.New(problem.Failed, "volume %s of node %s could not be sent to its host", d.Mount.Volume, d.Node).
			At("host " + h.Name).Because(err)
	}
	return left, err
}
