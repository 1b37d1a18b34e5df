package remote

import (
	"context"
	"io"
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
	Heir *apply.Heritage   `json:"heir,omitempty"`
	Keep apply.Mirrors     `json:"keep,omitzero"`

	Twin   string        `json:"twin,omitempty"`
	Shares []apply.Share `json:"shares,omitempty"`
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
		all[i].Path, all[i].Idle = shown(all[i].Path), shown(all[i].Idle)
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

// KeepMirrors lets the host do that by itself.
func (f *far) KeepMirrors(ctx context.Context, m apply.Mirrors) (notes []string, err error) {
	q := f.q()
	q.Volumes = &cellar{Keep: m}
	err = f.ask(ctx, toSchedule, q, nil, &notes)
	for i := range notes {
		notes[i] = shown(notes[i])
	}
	return notes[:min(len(notes), mostNotes)], err
}

// mostNotes is how many things a host may have to say of its timers, or of copies.
const mostNotes = 100

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
	if heir := q.Volumes.Heir; heir != nil {
		return on.adopt(ctx, about, *heir)
	}
	switch v := q.Volumes; about {
	case toMeasureAll:
		return on.Volumes(ctx, v.Of)
	case toMirror:
		v.With.By.Pid = os.Getpid() // that of the caller means nothing here
		return nil, on.MirrorVolumes(ctx, v.Of, v.With, func(m volume.Mirrored) { _ = with.Say(word{Progress: &progress{Mirrored: &m}}) })
	case toLay:
		if len(v.Of) != 1 {
			return nil, problem.New(problem.Failed, "not one volume is meant")
		}
		return nil, on.LayVolume(ctx, v.Of[0], wayOf(with))
	case toFill:
		return on.filled(ctx, v)
	case toSchedule:
		return on.KeepMirrors(ctx, v.Keep)
	case toVerify:
		return on.VerifyVolumes(ctx, v.Of)
	}
	return nil, unknown(about)
}

// A filled twin is what is not in its volumes, and why they are not all there.
type filled struct {
	Left  []string `json:"left"`
	Fault *fault   `json:"fault,omitempty"`
}

// FillTwin lets the host fill the volumes of a twin.
func (f *far) FillTwin(ctx context.Context, name string, of []apply.Share) ([]string, error) {
	q := f.q()
	q.Volumes = &cellar{Twin: name, Shares: of}
	var got filled
	if err := f.ask(ctx, toFill, q, nil, &got); err != nil {
		return nil, err
	}
	left := got.Left[:min(len(got.Left), mostNotes)]
	for i := range left {
		left[i] = shown(left[i])
	}
	return left, f.there(got.Fault.err())
}

func (on *lent) filled(ctx context.Context, v *cellar) (any, error) {
	left, err := on.FillTwin(ctx, v.Twin, v.Shares)
	return filled{left[:min(len(left), mostNotes)], faultOf(err)}, nil
}

// LayVolume lets the host take in a volume.
func (f *far) LayVolume(ctx context.Context, of apply.Directory, way io.ReadWriter) error {
	return f.along(ctx, toLay, f.ofVolumes([]apply.Directory{of}), way)
}

// An inheritance is volumes that a node was given, and why not the rest.
type inheritance struct {
	Done  []apply.Adopted `json:"done"`
	Fault *fault          `json:"fault,omitempty"`
}

func (f *far) ofHeritage(of apply.Heritage) question {
	q := f.q()
	q.Volumes = &cellar{Heir: &of}
	return q
}

// Adoptions gives what a node is to take over there.
func (f *far) Adoptions(ctx context.Context, of apply.Heritage) (all []apply.Adoption, err error) {
	err = f.ask(ctx, toInherit, f.ofHeritage(of), nil, &all)
	for i := range all {
		a := &all[i]
		a.Volume, a.As = shown(a.Volume), shown(a.As)
		for j := range a.Users {
			a.Users[j] = shown(a.Users[j])
		}
	}
	return all, err
}

// AdoptVolumes lets the host give it that.
func (f *far) AdoptVolumes(ctx context.Context, of apply.Heritage) ([]apply.Adopted, error) {
	var g inheritance
	if err := f.ask(ctx, toAdopt, f.ofHeritage(of), nil, &g); err != nil {
		return nil, err
	}
	for i := range g.Done {
		a := &g.Done[i]
		a.Volume, a.To, a.Kept = shown(a.Volume), shown(a.To), shown(a.Kept)
	}
	return g.Done, f.there(g.Fault.err())
}

// adopt does what is about volumes that another node gets.
func (on *lent) adopt(ctx context.Context, about string, of apply.Heritage) (any, error) {
	switch about {
	case toInherit:
		return on.Adoptions(ctx, of)
	case toAdopt:
		done, err := on.AdoptVolumes(ctx, of)
		return inheritance{done, faultOf(err)}, nil
	}
	return nil, unknown(about)
}
