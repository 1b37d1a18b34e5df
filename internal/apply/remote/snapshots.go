package remote

import (
	"context"
	"time"

	"orrery/internal/apply"
	"orrery/internal/engine"
	"orrery/internal/image"
	"orrery/internal/problem"
	"orrery/internal/snapshot"
	"orrery/internal/text/sanitize"
	"orrery/internal/transport/rpc"
	"orrery/internal/volume"
)

// A snapshotList is the parts of snapshots that a host has.
type snapshotList struct {
	Kept  []*snapshot.Snapshot `json:"kept"`
	Ready []string             `json:"ready"`
}

// The messages of a host that reports its progress, and the control host's answers where several
// hosts act together.
type (
	progress struct {
		Copied   bool                   `json:"copied,omitempty"`
		Stood    *engine.Pause          `json:"stood,omitempty"`
		Went     *engine.Pause          `json:"went,omitempty"`
		Back     *apply.RestoreFailures `json:"back,omitempty"`
		Mirrored *volume.MirrorStatus   `json:"mirrored,omitempty"`
		Removed  *image.Info            `json:"removed,omitempty"`
	}
	progressReply struct {
		At    time.Time    `json:"at,omitzero"`
		All   snapshot.All `json:"all,omitzero"`
		Fault *wireError   `json:"fault,omitempty"`
	}
)

// Limits for a host's reports on snapshots. A host reports on its own nodes only, and gets back
// only what it has reported.
const (
	maxSnapshots   = 10_000
	maxPerSnapshot = 100_000
	maxTextBytes   = 4096
)

// List returns the parts of snapshots on the remote host.
func (f snapshotHost) List(ctx context.Context) ([]*snapshot.Snapshot, []string, error) {
	held, err := snapshotsMethod.call(ctx, f.remoteHost, none{})
	if err != nil {
		return nil, nil, err
	}
	if len(held.Kept) > maxSnapshots || len(held.Ready) > maxSnapshots {
		return nil, nil, f.snapshotProblem("has too many snapshots")
	}
	for _, s := range held.Kept {
		if err := f.checkSnapshot(s); err != nil {
			return nil, nil, err
		}
	}
	for _, id := range held.Ready {
		if !snapshot.ValidID(id) {
			return nil, nil, f.snapshotProblem("has a snapshot with an invalid name")
		}
	}
	return held.Kept, held.Ready, nil
}

var snapshotsMethod = method[none, snapshotList]{
	name: "snapshots", callOptions: callOptions{abandoned: true},
	answer: func(ctx context.Context, c *serverCall, _ none) (snapshotList, error) {
		kept, ready, err := c.host().Snapshots.List(ctx)
		return snapshotList{kept, ready}, err
	},
}

func (f *remoteHost) snapshotProblem(what string) error {
	return problem.New(problem.Surprise, "host %s %s", f.at.Host, what).
		Try("look at sites/%s/snapshots in its state directory; --without %s leaves it out until then", f.at.Key, f.at.Host)
}

// checkSnapshot sanitizes a snapshot that a host sent, or returns an error if it is not valid.
func (f *remoteHost) checkSnapshot(s *snapshot.Snapshot) error {
	if s == nil || !snapshot.ValidID(s.ID) || len(s.Nodes) > maxPerSnapshot || len(s.Volumes) > maxPerSnapshot ||
		len(s.Omitted) > maxPerSnapshot || len(s.Left) > maxPerSnapshot || len(s.Hosts) > maxPerSnapshot {
		return f.snapshotProblem("has an invalid snapshot")
	}
	for _, n := range s.Nodes {
		if n.Record == nil {
			return f.snapshotProblem("has a snapshot of a node without a record")
		}
	}
	s.Site, s.Dir = f.at.Key, ""
	s.Who = sanitizeText(s.Who)
	for i := range s.Volumes {
		v := &s.Volumes[i]
		v.Name, v.Node, v.Path = sanitizeText(v.Name), sanitizeText(v.Node), sanitizeText(v.Path)
	}
	for _, texts := range [][]string{s.Omitted, s.Left, s.Hosts} {
		for i := range texts {
			texts[i] = sanitizeText(texts[i])
		}
	}
	return nil
}

// sanitizeText sanitizes text from a host so that it fits on a line.
func sanitizeText(text string) string { return sanitize.Line(text[:min(len(text), maxTextBytes)]) }

// Size returns the size of a part.
func (f snapshotHost) Size(ctx context.Context, id string) (size volume.Size, err error) {
	return snapshotSizeMethod.call(ctx, f.remoteHost, id)
}

var snapshotSizeMethod = method[string, volume.Size]{
	name: "size of snapshot", callOptions: callOptions{long: true, abandoned: true},
	answer: func(ctx context.Context, c *serverCall, ask string) (volume.Size, error) {
		return c.host().Snapshots.Size(ctx, ask)
	},
}

// Restoring returns the snapshot whose restore was interrupted.
func (f snapshotHost) Restoring(ctx context.Context) (string, []string, error) {
	c, err := restoringMethod.call(ctx, f.remoteHost, none{})
	if err == nil && (c.ID != "" && !snapshot.ValidID(c.ID) || len(c.Nodes) > maxPerSnapshot) {
		err = f.snapshotProblem("has restored a snapshot with an invalid name")
	}
	for i := range c.Nodes {
		c.Nodes[i] = sanitizeText(c.Nodes[i])
	}
	return c.ID, c.Nodes, err
}

// An interruptedRestore is a restore that was interrupted.
type interruptedRestore struct {
	ID    string   `json:"id"`
	Nodes []string `json:"nodes"`
}

var restoringMethod = method[none, interruptedRestore]{
	name: "restoring", callOptions: callOptions{abandoned: true},
	answer: func(ctx context.Context, c *serverCall, _ none) (interruptedRestore, error) {
		id, nodes, err := c.host().Snapshots.Restoring(ctx)
		return interruptedRestore{id, nodes}, err
	},
}

// Capture makes a part ready. If the other hosts fail, the helper is told so, and has removed its
// part when Capture returns.
func (f snapshotHost) Capture(ctx context.Context, of apply.SnapshotRequest,
	with snapshot.Barrier) (*snapshot.Snapshot, error) {
	taken, err := captureMethod.ask(ctx, f.Link, f.at, of, func(t *rpc.Stream, w *response) error {
		var next progressReply
		var err error
		switch p := w.Progress; {
		case p == nil:
			return nil
		case p.Copied:
			next.At, err = with.Copied(ctx)
		case p.Stood != nil:
			err = with.Stood(ctx, *p.Stood)
		case p.Went != nil:
			next.All, err = with.Went(ctx, *p.Went)
		}
		next.Fault = toWireError(err)
		return t.Send(next)
	})
	if err == nil {
		err = f.checkSnapshot(taken)
	}
	return taken, err
}

var captureMethod = method[apply.SnapshotRequest, *snapshot.Snapshot]{
	name: "capture", callOptions: callOptions{long: true},
	answer: func(ctx context.Context, c *serverCall, ask apply.SnapshotRequest) (*snapshot.Snapshot, error) {
		return c.host().Snapshots.Capture(ctx, ask, barrier{c.ServerStream})
	},
}

// Keep stores a part that is ready.
func (f snapshotHost) Keep(ctx context.Context, id string) error {
	_, err := keepSnapshotMethod.call(ctx, f.remoteHost, id)
	return err
}

var keepSnapshotMethod = method[string, none]{
	name: "keep snapshot", callOptions: callOptions{long: true},
	answer: func(ctx context.Context, c *serverCall, ask string) (none, error) {
		return none{}, c.host().Snapshots.Keep(ctx, ask)
	},
}

// Remove removes a part.
func (f snapshotHost) Remove(ctx context.Context, id string) error {
	_, err := removeSnapshotMethod.call(ctx, f.remoteHost, id)
	return err
}

var removeSnapshotMethod = method[string, none]{
	name: "remove snapshot", callOptions: callOptions{long: true},
	answer: func(ctx context.Context, c *serverCall, ask string) (none, error) {
		return none{}, c.host().Snapshots.Remove(ctx, ask)
	},
}

// Restore restores nodes from a snapshot.
func (f snapshotHost) Restore(ctx context.Context, id string, nodes []string,
	then func(apply.RestoreFailures) error) error {
	asked := false
	_, err := restoreMethod.ask(ctx, f.Link, f.at, restoreRequest{id, nodes}, func(t *rpc.Stream, w *response) error {
		if w.Progress == nil || w.Progress.Back == nil || asked {
			return nil
		}
		asked = true
		b := *w.Progress.Back
		if len(b.Left) > maxPerSnapshot || len(b.Lost) > maxPerSnapshot {
			b = apply.RestoreFailures{Left: []string{"the host reported too many failures"}}
		}
		for _, texts := range [][]string{b.Left, b.Lost} {
			for i := range texts {
				texts[i] = sanitizeText(texts[i])
			}
		}
		return t.Send(progressReply{Fault: toWireError(then(b))})
	})
	if err == nil && !asked {
		return f.snapshotProblem("reports restored nodes without asking for confirmation")
	}
	return err
}

// A restoreRequest says which nodes to restore from which snapshot.
type restoreRequest struct {
	ID    string   `json:"id"`
	Nodes []string `json:"nodes"`
}

var restoreMethod = method[restoreRequest, none]{
	name: "put back", callOptions: callOptions{long: true},
	answer: func(ctx context.Context, c *serverCall, ask restoreRequest) (none, error) {
		return none{}, c.host().Snapshots.Restore(ctx, ask.ID, ask.Nodes, func(b apply.RestoreFailures) error {
			_, err := barrier{c.ServerStream}.say(progress{Back: &b})
			return err
		})
	},
}

// A barrier keeps the helper in step with the other hosts by asking the control host.
type barrier struct{ with *rpc.ServerStream }

func (p barrier) say(how progress) (next progressReply, err error) {
	if err := p.with.Send(response{Progress: &how}); err != nil {
		return next, err
	}
	if err := p.with.Recv(&next); err != nil {
		return next, err
	}
	return next, next.Fault.toError()
}

// Copied reports that everything that existed before has been copied.
func (p barrier) Copied(context.Context) (time.Time, error) {
	next, err := p.say(progress{Copied: true})
	return next.At, err
}

// Stood reports that the nodes are frozen.
func (p barrier) Stood(_ context.Context, how engine.Pause) error {
	_, err := p.say(progress{Stood: &how})
	return err
}

// Went reports that the nodes run again.
func (p barrier) Went(_ context.Context, how engine.Pause) (snapshot.All, error) {
	next, err := p.say(progress{Went: &how})
	return next.All, err
}
