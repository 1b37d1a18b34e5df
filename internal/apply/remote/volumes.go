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
func (f volumeHost) Describe(ctx context.Context, of []apply.Directory) ([]apply.VolumeStatus, error) {
	all, err := volumesMethod.call(ctx, f.remoteHost, of)
	if err != nil {
		return nil, err
	}
	if len(all) != len(of) {
		return nil, f.snapshotProblem("reported other volumes than requested")
	}
	for i := range all {
		all[i].Path, all[i].Idle = sanitizeText(all[i].Path), sanitizeText(all[i].Idle)
		if w := all[i].Last; w != nil {
			*w = sanitizeMirror(*w)
		}
	}
	return all, nil
}

var volumesMethod = method[[]apply.Directory, []apply.VolumeStatus]{
	name: "volumes", callOptions: callOptions{long: true, abandoned: true},
	answer: func(ctx context.Context, c *serverCall, ask []apply.Directory) ([]apply.VolumeStatus, error) {
		return c.host().Volumes.Describe(ctx, ask)
	},
}

// sanitizeMirror sanitizes a host's report on a mirror.
func sanitizeMirror(w volume.MirrorStatus) volume.MirrorStatus {
	w.Volume, w.Node, w.To, w.Problem = sanitizeText(w.Volume), sanitizeText(w.Node), sanitizeText(w.To),
		sanitizeText(w.Problem)
	return w
}

// Mirror updates mirrors on the remote host.
func (f volumeHost) Mirror(ctx context.Context, of []apply.Directory, with apply.MirrorRun,
	each func(volume.MirrorStatus)) error {
	if name, err := os.Hostname(); err == nil {
		with.By.Who += " at " + name
	}
	told := 0
	_, err := mirrorVolumesMethod.ask(ctx, f.Link, f.at, mirrorRun{of, with}, func(_ *rpc.Stream, w *response) error {
		if p := w.Progress; p != nil && p.Mirrored != nil && told < len(of) {
			told++
			each(sanitizeMirror(*p.Mirrored))
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
	name: "mirror", callOptions: callOptions{long: true},
	answer: func(ctx context.Context, c *serverCall, ask mirrorRun) (none, error) {
		ask.With.By.Pid = os.Getpid() // the caller's process id has no meaning on this host
		return none{}, c.host().Volumes.Mirror(ctx, ask.Of, ask.With, func(m volume.MirrorStatus) {
			_ = c.Send(response{Progress: &progress{Mirrored: &m}})
		})
	},
}

// maxNotes limits a host's notes on its timers or on copies.
const maxNotes = 100

// Verify compares directories with their mirrors on the remote host.
func (f volumeHost) Verify(ctx context.Context, of []apply.Directory) ([][]volume.Difference, error) {
	all, err := verifyVolumesMethod.call(ctx, f.remoteHost, of)
	if err != nil {
		return nil, err
	}
	if len(all) != len(of) {
		return nil, f.snapshotProblem("reported other volumes than requested")
	}
	for _, each := range all {
		for i := range each {
			each[i].What = sanitizeText(each[i].What) // the path is sanitized where it is printed
		}
	}
	return all, nil
}

var verifyVolumesMethod = method[[]apply.Directory, [][]volume.Difference]{
	name: "verify", callOptions: callOptions{long: true, abandoned: true},
	answer: func(ctx context.Context, c *serverCall, ask []apply.Directory) ([][]volume.Difference, error) {
		return c.host().Volumes.Verify(ctx, ask)
	},
}

// fillReply says what is missing in the volumes of a twin, and why.
type fillReply struct {
	Left  []string   `json:"left"`
	Fault *wireError `json:"fault,omitempty"`
}

// Fill makes the remote host fill the volumes of a twin.
func (f twinHost) Fill(ctx context.Context, name string, of []apply.VolumeCopy) ([]string, error) {
	got, err := fillTwinMethod.call(ctx, f.remoteHost, fillRequest{name, of})
	if err != nil {
		return nil, err
	}
	left := got.Left[:min(len(got.Left), maxNotes)]
	for i := range left {
		left[i] = sanitizeText(left[i])
	}
	return left, f.withHostName(got.Fault.toError())
}

// A fillRequest says which twin gets copies of which volumes.
type fillRequest struct {
	Twin   string             `json:"twin"`
	Shares []apply.VolumeCopy `json:"shares"`
}

var fillTwinMethod = method[fillRequest, fillReply]{
	name: "fill twin", callOptions: callOptions{long: true},
	answer: func(ctx context.Context, c *serverCall, ask fillRequest) (fillReply, error) {
		left, err := c.host().Twins.Fill(ctx, ask.Twin, ask.Shares)
		return fillReply{left[:min(len(left), maxNotes)], toWireError(err)}, nil
	},
}

// Receive makes the remote host store a volume.
func (f volumeHost) Receive(ctx context.Context, of apply.Directory, way io.ReadWriter) error {
	return receiveVolumeMethod.callStream(ctx, f.remoteHost, of, way)
}

var receiveVolumeMethod = method[apply.Directory, none]{
	name: "lay volume", callOptions: callOptions{long: true, displayed: true},
	answer: func(ctx context.Context, c *serverCall, ask apply.Directory) (none, error) {
		return none{}, c.host().Volumes.Receive(ctx, ask, c.stream())
	},
}

// An adoptReply is the volumes that a node took over, and why the others are missing.
type adoptReply struct {
	Done  []apply.AdoptResult `json:"done"`
	Fault *wireError          `json:"fault,omitempty"`
}

// Adoptions returns the directories that a node would take over on the remote host.
func (f volumeHost) Adoptions(ctx context.Context, of apply.AdoptRequest) (all []apply.Adoption, err error) {
	all, err = adoptionsMethod.call(ctx, f.remoteHost, of)
	for i := range all {
		a := &all[i]
		a.Volume, a.As = sanitizeText(a.Volume), sanitizeText(a.As)
		for j := range a.Users {
			a.Users[j] = sanitizeText(a.Users[j])
		}
	}
	return all, err
}

var adoptionsMethod = method[apply.AdoptRequest, []apply.Adoption]{
	name: "adoptions", callOptions: callOptions{abandoned: true},
	answer: func(ctx context.Context, c *serverCall, ask apply.AdoptRequest) ([]apply.Adoption, error) {
		return c.host().Volumes.Adoptions(ctx, ask)
	},
}

// Adopt makes the remote host move these directories to the node.
func (f volumeHost) Adopt(ctx context.Context, of apply.AdoptRequest) ([]apply.AdoptResult, error) {
	g, err := adoptVolumesMethod.call(ctx, f.remoteHost, of)
	if err != nil {
		return nil, err
	}
	for i := range g.Done {
		a := &g.Done[i]
		a.Volume, a.To, a.Kept = sanitizeText(a.Volume), sanitizeText(a.To), sanitizeText(a.Kept)
	}
	return g.Done, f.withHostName(g.Fault.toError())
}

var adoptVolumesMethod = method[apply.AdoptRequest, adoptReply]{
	name: "adopt", callOptions: callOptions{long: true},
	answer: func(ctx context.Context, c *serverCall, ask apply.AdoptRequest) (adoptReply, error) {
		done, err := c.host().Volumes.Adopt(ctx, ask)
		return adoptReply{done, toWireError(err)}, nil
	},
}
