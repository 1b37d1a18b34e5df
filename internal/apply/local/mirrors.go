package local

import (
	"context"
	"errors"
	"time"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/host/schedule"
	"orrery/internal/volume"
)

// mirrorVolumes are the directories of a site's volumes on a host. It maintains their mirrors.
type mirrorVolumes struct {
	dirs host.Dirs
	key  string
}

// newMirrorVolumes returns the directories of a site's volumes.
func newMirrorVolumes(dirs host.Dirs, key string) mirrorVolumes { return mirrorVolumes{dirs, key} }

// Describe returns the contents of directories and the state of their mirrors.
func (c mirrorVolumes) Describe(ctx context.Context, of []apply.Directory) ([]apply.VolumeStatus, error) {
	went, err := volume.ReadMirrorStatus(c.dirs, c.key)
	if err != nil {
		return nil, err
	}
	all := make([]apply.VolumeStatus, len(of))
	for i, d := range of {
		contents := &all[i]
		contents.Path = d.At(c.dirs, c.key)
		contents.Size, err = volume.SizeOf(ctx, contents.Path)
		contents.There = err == nil
		for _, w := range went {
			if w.Volume == d.Mount.Volume && w.Node == d.Name() {
				contents.Last = &w
			}
		}
		if d.Every > 0 && d.Mirror != "" {
			var last time.Time
			if contents.Last != nil {
				last = contents.Last.At
			}
			contents.Next, contents.Idle = schedule.Timers{Key: c.key,
				Dirs: c.dirs}.NextRun(schedule.Timer{For: apply.TriggerMirror, Part: d.Mount.Volume, Every: d.Every}, last,
				time.Now())
		}
	}
	return all, ctx.Err()
}

func (c mirrorVolumes) mirror(d apply.Directory) volume.Mirror {
	return volume.Mirror{Volume: d.Mount.Volume, Node: d.Name(), From: d.At(c.dirs, c.key), To: d.Mirror}
}

// Mirror updates mirrors.
func (c mirrorVolumes) Mirror(ctx context.Context, of []apply.Directory, with apply.MirrorRun,
	each func(volume.MirrorStatus)) error {
	lock, err := volume.LockMirrors(ctx, c.dirs, c.key, with.By)
	if err != nil {
		return err
	}
	defer lock.Release()
	bring := volume.Mirror.Run
	if with.Contents {
		bring = volume.Mirror.Repair
	}
	for _, d := range of {
		m := c.mirror(d)
		made := volume.MirrorStatus{Volume: m.Volume, Node: m.Node, To: m.To, At: time.Now()}
		sent, failed := bring(m, ctx)
		made.Bytes, made.Seconds = sent, time.Since(made.At).Seconds()
		if failed != nil {
			made.Problem = failed.Error()
		}
		each(made)
		err = errors.Join(err, failed)
		err = errors.Join(err, made.Save(c.dirs, c.key))
	}
	return err
}

// Verify compares directories with their mirrors.
func (c mirrorVolumes) Verify(ctx context.Context, of []apply.Directory) ([][]volume.Difference, error) {
	all := make([][]volume.Difference, len(of))
	for i, d := range of {
		var err error
		if all[i], err = c.mirror(d).Verify(ctx); err != nil {
			return nil, err
		}
	}
	return all, nil
}
