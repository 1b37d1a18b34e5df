package remote

import (
	"context"
	"os"

	"orrery/internal/apply"
	"orrery/internal/problem"
	"orrery/internal/volume"
	"orrery/internal/wire"
)

// A cellar is what is asked about directories of volumes.
type cellar struct {
	Of   []apply.Directory `json:"of"`
	With apply.MirrorRun   `json:"with,omitzero"`
}

func (f *far) ofVolumes(of []apply.Directory) question {
	q := f.q()
	q.Volumes = &cellar{Of: of}
	return q
}

// Volumes tells of directories.
func (f *far) Volumes(ctx context.Context, of []apply.Directory) ([]apply.Contents, error) {
	var all []apply.Contents
	if err := f.ask(ctx, toMeasureAll, f.ofVolumes(of), nil, &all); err != nil {
		return nil, err
	}
	if len(all) != len(of) {
		return nil, f.no("was asked about other volumes than it tells of")
	}
	for i := range all {
		all[i].Path = shown(all[i].Path)
		if w := all[i].Last; w != nil {
			*w = said(*w)
		}
	}
	return all, nil
}

// said makes what a host says of a mirror fit to be shown.
func said(w volume.Mirrored) volume.Mirrored {
	w.Volume, w.Node, w.To, w.Problem = shown(w.Volume), shown(w.Node), shown(w.To), shown(w.Problem)
	return w
}

// MirrorVolumes brings mirrors up to date.
func (f *far) MirrorVolumes(ctx context.Context, of []apply.Directory, with apply.MirrorRun, each func(volume.Mirrored)) error {
	q := f.ofVolumes(of)
	q.Volumes.With = with
	if name, err := os.Hostname(); err == nil {
		q.Volumes.With.By.Who += " at " + name
	}
	told := 0
	return f.ask(ctx, toMirror, q, func(_ *wire.Talk, w *word) error {
		if p := w.Progress; p != nil && p.Mirrored != nil && told < len(of) {
			told++
			each(said(*p.Mirrored))
		}
		return nil
	}, nil)
}

// VerifyVolumes compares directories with their mirrors.
func (f *far) VerifyVolumes(ctx context.Context, of []apply.Directory) ([][]volume.Deviation, error) {
	var all [][]volume.Deviation
	if err := f.ask(ctx, toVerify, f.ofVolumes(of), nil, &all); err != nil {
		return nil, err
	}
	if len(all) != len(of) {
		return nil, f.no("was asked about other volumes than it tells of")
	}
	for _, each := range all {
		for i := range each {
			each[i].What = shown(each[i].What) // the path is shown where it is printed
		}
	}
	return all, nil
}

// store does what is about volumes.
func (on *lent) store(ctx context.Context, about string, q *question, with *wire.Caller) (any, error) {
	if q.Volumes == nil {
		return nil, problem.New(problem.Failed, "no volumes are meant")
	}
	switch v := q.Volumes; about {
	case toMeasureAll:
		return on.Volumes(ctx, v.Of)
	case toMirror:
		v.With.By.Pid = os.Getpid() // that of the caller means nothing here
		return nil, on.MirrorVolumes(ctx, v.Of, v.With, func(m volume.Mirrored) { _ = with.Say(word{Progress: &progress{Mirrored: &m}}) })
	case toVerify:
		return on.VerifyVolumes(ctx, v.Of)
	}
	return nil, unknown(about)
}
