package local

import (
	"context"
	"errors"
	"time"

	"orrery/internal/apply"
	"orrery/internal/volume"
)

// Volumes tells of directories of volumes.
func (p *Place) Volumes(ctx context.Context, of []apply.Directory) ([]apply.Contents, error) {
	went, err := volume.ReadMirrored(p.Dirs, p.Key)
	if err != nil {
		return nil, err
	}
	all := make([]apply.Contents, len(of))
	for i, d := range of {
		c := &all[i]
		c.Path = d.At(p.Dirs, p.Key)
		c.Size, err = volume.SizeOf(ctx, c.Path)
		c.There = err == nil
		for _, w := range went {
			if w.Volume == d.Mount.Volume && w.Node == d.Name() {
				c.Last = &w
			}
		}
	}
	return all, ctx.Err()
}

func (p *Place) mirror(d apply.Directory) volume.Mirror {
	return volume.Mirror{Volume: d.Mount.Volume, Node: d.Name(), From: d.At(p.Dirs, p.Key), To: d.Mirror}
}

// MirrorVolumes brings mirrors up to date.
func (p *Place) MirrorVolumes(ctx context.Context, of []apply.Directory, with apply.MirrorRun, each func(volume.Mirrored)) error {
	lock, err := volume.LockMirrors(p.Dirs, p.Key, with.By)
	if err != nil {
		return err
	}
	defer lock.Release()
	bring := volume.Mirror.Run
	if with.Contents {
		bring = volume.Mirror.Mend
	}
	for _, d := range of {
		m := p.mirror(d)
		made := volume.Mirrored{Volume: m.Volume, Node: m.Node, To: m.To, At: time.Now()}
		sent, failed := bring(m, ctx)
		made.Bytes, made.Seconds = sent, time.Since(made.At).Seconds()
		if failed != nil {
			made.Problem = failed.Error()
		}
		each(made)
		err = errors.Join(err, failed)
		err = errors.Join(err, made.Note(p.Dirs, p.Key))
	}
	return err
}

// VerifyVolumes compares directories with their mirrors.
func (p *Place) VerifyVolumes(ctx context.Context, of []apply.Directory) ([][]volume.Deviation, error) {
	all := make([][]volume.Deviation, len(of))
	for i, d := range of {
		var err error
		if all[i], err = p.mirror(d).Verify(ctx); err != nil {
			return nil, err
		}
	}
	return all, nil
}
