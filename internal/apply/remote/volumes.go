package remote

import (
	"context"
	"io"
	"os"

	"orrery/internal/apply"
	"orrery/internal/transport/rpc"
	"orrery/internal/volume"
)

// Describe returns the contents of directories on the remote host.
func (f volumeHost) Describe(ctx context.Context, of []apply.Directory) ([]apply.Contents, error) {
	all, err := volumesMethod.call(ctx, f.far, of)
	if err != nil {
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

var volumesMethod = method[[]apply.Directory, []apply.Contents]{
	name: "volumes", traits: traits{long: true, abandoned: true},
	answer: func(ctx context.Context, c *received, ask []apply.Directory) ([]apply.Contents, error) {
		return c.host().Volumes.Describe(ctx, ask)
	},
}

// said sanitizes a host's report on a mirror.
func said(w volume.Mirrored) volume.Mirrored {
	w.Volume, w.Node, w.To, w.Problem = shown(w.Volume), shown(w.Node), shown(w.To), shown(w.Problem)
	return w
}

// Mirror updates mirrors on the remote host.
func (f volumeHost) Mirror(ctx context.Context, of []apply.Directory, with apply.MirrorRun,
	each func(volume.Mirrored)) error {
	if name, err := os.Hostname(); err == nil {
		with.By.Who += " at " + name
	}
	told := 0
	_, err := mirrorVolumesMethod.ask(ctx, f.Link, f.at, mirrorRun{of, with}, func(_ *rpc.Talk, w *word) error {
		if p := w.Progress; p != nil && p.Mirrored != nil && told < len(of) {
			told++
			each(said(*p.Mirrored))
		}
		return nil
	})
	return err
}

// A mirrorRun says which volumes are mirrored, and how.
type mirrorRun struct {
	Of   []apply.Directory `json:"of"`
	With apply.MirrorRun   `json:"with"`
}

var mirrorVolumesMethod = method[mirrorRun, none]{
	name: "mirror", traits: traits{long: true},
	answer: func(ctx context.Context, c *received, ask mirrorRun) (none, error) {
		ask.With.By.Pid = os.Getpid() // the caller's process id has no meaning on this host
		return none{}, c.host().Volumes.Mirror(ctx, ask.Of, ask.With, func(m volume.Mirrored) {
			_ = c.Say(word{Progress: &progress{Mirrored: &m}})
		})
	},
}

// maxNotes limits a host's notes on its timers or on copies.
const maxNotes = 100

// Verify compares directories with their mirrors on the remote host.
func (f volumeHost) Verify(ctx context.Context, of []apply.Directory) ([][]volume.Deviation, error) {
	all, err := verifyVolumesMethod.call(ctx, f.far, of)
	if err != nil {
		return nil, err
	}
	if len(all) != len(of) {
		return nil, f.no("was asked about other volumes than it tells of")
	}
	for _, each := range all {
		for i := range each {
			each[i].What = shown(each[i].What) // the path is sanitized where it is printed
		}
	}
	return all, nil
}

var verifyVolumesMethod = method[[]apply.Directory, [][]volume.Deviation]{
	name: "verify", traits: traits{long: true, abandoned: true},
	answer: func(ctx context.Context, c *received, ask []apply.Directory) ([][]volume.Deviation, error) {
		return c.host().Volumes.Verify(ctx, ask)
	},
}

// filled says what is missing in the volumes of a twin, and why.
type filled struct {
	Left  []string `json:"left"`
	Fault *fault   `json:"fault,omitempty"`
}

// Fill makes the remote host fill the volumes of a twin.
func (f twinHost) Fill(ctx context.Context, name string, of []apply.Share) ([]string, error) {
	got, err := fillTwinMethod.call(ctx, f.far, filling{name, of})
	if err != nil {
		return nil, err
	}
	left := got.Left[:min(len(got.Left), maxNotes)]
	for i := range left {
		left[i] = shown(left[i])
	}
	return left, f.there(got.Fault.err())
}

// A filling says which twin gets copies of which volumes.
type filling struct {
	Twin   string        `json:"twin"`
	Shares []apply.Share `json:"shares"`
}

var fillTwinMethod = method[filling, filled]{
	name: "fill twin", traits: traits{long: true},
	answer: func(ctx context.Context, c *received, ask filling) (filled, error) {
		left, err := c.host().Twins.Fill(ctx, ask.Twin, ask.Shares)
		return filled{left[:min(len(left), maxNotes)], faultOf(err)}, nil
	},
}

// Receive makes the remote host store a volume.
func (f volumeHost) Receive(ctx context.Context, of apply.Directory, way io.ReadWriter) error {
	return layVolumeMethod.along(ctx, f.far, of, way)
}

var layVolumeMethod = method[apply.Directory, none]{
	name: "lay volume", traits: traits{long: true, displayed: true},
	answer: func(ctx context.Context, c *received, ask apply.Directory) (none, error) {
		return none{}, c.host().Volumes.Receive(ctx, ask, c.stream())
	},
}

// An inheritance is the volumes that a node took over, and why the others are missing.
type inheritance struct {
	Done  []apply.Adopted `json:"done"`
	Fault *fault          `json:"fault,omitempty"`
}

// Adoptions returns the directories that a node would take over on the remote host.
func (f volumeHost) Adoptions(ctx context.Context, of apply.Heritage) (all []apply.Adoption, err error) {
	all, err = adoptionsMethod.call(ctx, f.far, of)
	for i := range all {
		a := &all[i]
		a.Volume, a.As = shown(a.Volume), shown(a.As)
		for j := range a.Users {
			a.Users[j] = shown(a.Users[j])
		}
	}
	return all, err
}

var adoptionsMethod = method[apply.Heritage, []apply.Adoption]{
	name: "adoptions", traits: traits{abandoned: true},
	answer: func(ctx context.Context, c *received, ask apply.Heritage) ([]apply.Adoption, error) {
		return c.host().Volumes.Adoptions(ctx, ask)
	},
}

// Adopt makes the remote host move these directories to the node.
func (f volumeHost) Adopt(ctx context.Context, of apply.Heritage) ([]apply.Adopted, error) {
	g, err := adoptVolumesMethod.call(ctx, f.far, of)
	if err != nil {
		return nil, err
	}
	for i := range g.Done {
		a := &g.Done[i]
		a.Volume, a.To, a.Kept = shown(a.Volume), shown(a.To), shown(a.Kept)
	}
	return g.Done, f.there(g.Fault.err())
}

var adoptVolumesMethod = method[apply.Heritage, inheritance]{
	name: "adopt", traits: traits{long: true},
	answer: func(ctx context.Context, c *received, ask apply.Heritage) (inheritance, error) {
		done, err := c.host().Volumes.Adopt(ctx, ask)
		return inheritance{done, faultOf(err)}, nil
	},
}
