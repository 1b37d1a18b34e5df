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

// A shelf is the parts of snapshots that a host has.
type shelf struct {
	Kept  []*snapshot.Snapshot `json:"kept"`
	Ready []string             `json:"ready"`
}

// The messages of a host that reports its progress, and the control host's answers where several
// hosts act together.
type (
	progress struct {
		Copied   bool             `json:"copied,omitempty"`
		Stood    *engine.Pause    `json:"stood,omitempty"`
		Went     *engine.Pause    `json:"went,omitempty"`
		Back     *apply.Back      `json:"back,omitempty"`
		Mirrored *volume.Mirrored `json:"mirrored,omitempty"`
		Removed  *image.Info      `json:"removed,omitempty"`
	}
	goOn struct {
		At    time.Time    `json:"at,omitzero"`
		All   snapshot.All `json:"all,omitzero"`
		Fault *fault       `json:"fault,omitempty"`
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
	held, err := snapshotsMethod.call(ctx, f.far, none{})
	if err != nil {
		return nil, nil, err
	}
	if len(held.Kept) > maxSnapshots || len(held.Ready) > maxSnapshots {
		return nil, nil, f.no("has too many snapshots")
	}
	for _, s := range held.Kept {
		if err := f.fit(s); err != nil {
			return nil, nil, err
		}
	}
	for _, id := range held.Ready {
		if !snapshot.FitID(id) {
			return nil, nil, f.no("has a snapshot of a name that none has")
		}
	}
	return held.Kept, held.Ready, nil
}

var snapshotsMethod = method[none, shelf]{
	name: "snapshots", traits: traits{abandoned: true},
	answer: func(ctx context.Context, c *received, _ none) (shelf, error) {
		kept, ready, err := c.host().Snapshots.List(ctx)
		return shelf{kept, ready}, err
	},
}

func (f *far) no(what string) error {
	return problem.New(problem.Surprise, "host %s %s", f.at.Host, what).
		Try("look at sites/%s/snapshots in its state directory; --without %s leaves it out until then", f.at.Key, f.at.Host)
}

// fit sanitizes a snapshot that a host sent, or returns an error if it is not valid.
func (f *far) fit(s *snapshot.Snapshot) error {
	if s == nil || !snapshot.FitID(s.ID) || len(s.Nodes) > maxPerSnapshot || len(s.Volumes) > maxPerSnapshot ||
		len(s.Omitted) > maxPerSnapshot || len(s.Left) > maxPerSnapshot || len(s.Hosts) > maxPerSnapshot {
		return f.no("has a snapshot that is none")
	}
	for _, n := range s.Nodes {
		if n.Record == nil {
			return f.no("has a snapshot of a node of which nothing is on record")
		}
	}
	s.Site, s.Dir = f.at.Key, ""
	s.Who = shown(s.Who)
	for i := range s.Volumes {
		v := &s.Volumes[i]
		v.Name, v.Node, v.Path = shown(v.Name), shown(v.Node), shown(v.Path)
	}
	for _, texts := range [][]string{s.Omitted, s.Left, s.Hosts} {
		for i := range texts {
			texts[i] = shown(texts[i])
		}
	}
	return nil
}

// shown sanitizes text from a host so that it fits on a line.
func shown(text string) string { return sanitize.Line(text[:min(len(text), maxTextBytes)]) }

// Size returns the size of a part.
func (f snapshotHost) Size(ctx context.Context, id string) (size volume.Size, err error) {
	return snapshotSizeMethod.call(ctx, f.far, id)
}

var snapshotSizeMethod = method[string, volume.Size]{
	name: "size of snapshot", traits: traits{long: true, abandoned: true},
	answer: func(ctx context.Context, c *received, ask string) (volume.Size, error) {
		return c.host().Snapshots.Size(ctx, ask)
	},
}

// Restoring returns the snapshot whose restore was interrupted.
func (f snapshotHost) Restoring(ctx context.Context) (string, []string, error) {
	c, err := restoringMethod.call(ctx, f.far, none{})
	if err == nil && (c.ID != "" && !snapshot.FitID(c.ID) || len(c.Nodes) > maxPerSnapshot) {
		err = f.no("has restored a snapshot of a name that none has")
	}
	for i := range c.Nodes {
		c.Nodes[i] = shown(c.Nodes[i])
	}
	return c.ID, c.Nodes, err
}

// A cut is a restore that was interrupted.
type cut struct {
	ID    string   `json:"id"`
	Nodes []string `json:"nodes"`
}

var restoringMethod = method[none, cut]{
	name: "restoring", traits: traits{abandoned: true},
	answer: func(ctx context.Context, c *received, _ none) (cut, error) {
		id, nodes, err := c.host().Snapshots.Restoring(ctx)
		return cut{id, nodes}, err
	},
}

// Capture makes a part ready. If the other hosts fail, the helper is told so, and has removed its
// part when Capture returns.
func (f snapshotHost) Capture(ctx context.Context, of apply.Capture, with snapshot.Pace) (*snapshot.Snapshot, error) {
	taken, err := captureMethod.ask(ctx, f.Link, f.at, of, func(t *rpc.Talk, w *word) error {
		var next goOn
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
		next.Fault = faultOf(err)
		return t.Say(next)
	})
	if err == nil {
		err = f.fit(taken)
	}
	return taken, err
}

var captureMethod = method[apply.Capture, *snapshot.Snapshot]{
	name: "capture", traits: traits{long: true},
	answer: func(ctx context.Context, c *received, ask apply.Capture) (*snapshot.Snapshot, error) {
		return c.host().Snapshots.Capture(ctx, ask, pace{c.Caller})
	},
}

// Keep stores a part that is ready.
func (f snapshotHost) Keep(ctx context.Context, id string) error {
	_, err := keepSnapshotMethod.call(ctx, f.far, id)
	return err
}

var keepSnapshotMethod = method[string, none]{
	name: "keep snapshot", traits: traits{long: true},
	answer: func(ctx context.Context, c *received, ask string) (none, error) {
		return none{}, c.host().Snapshots.Keep(ctx, ask)
	},
}

// Remove removes a part.
func (f snapshotHost) Remove(ctx context.Context, id string) error {
	_, err := removeSnapshotMethod.call(ctx, f.far, id)
	return err
}

var removeSnapshotMethod = method[string, none]{
	name: "remove snapshot", traits: traits{long: true},
	answer: func(ctx context.Context, c *received, ask string) (none, error) {
		return none{}, c.host().Snapshots.Remove(ctx, ask)
	},
}

// Restore restores nodes from a snapshot.
func (f snapshotHost) Restore(ctx context.Context, id string, nodes []string, then func(apply.Back) error) error {
	asked := false
	_, err := putBackMethod.ask(ctx, f.Link, f.at, putBack{id, nodes}, func(t *rpc.Talk, w *word) error {
		if w.Progress == nil || w.Progress.Back == nil || asked {
			return nil
		}
		asked = true
		b := *w.Progress.Back
		if len(b.Left) > maxPerSnapshot || len(b.Lost) > maxPerSnapshot {
			b = apply.Back{Left: []string{"it says too much"}}
		}
		for _, texts := range [][]string{b.Left, b.Lost} {
			for i := range texts {
				texts[i] = shown(texts[i])
			}
		}
		return t.Say(goOn{Fault: faultOf(then(b))})
	})
	if err == nil && !asked {
		return f.no("says that it has put nodes back, and has not asked whether they stay")
	}
	return err
}

// A putBack says which nodes to restore from which snapshot.
type putBack struct {
	ID    string   `json:"id"`
	Nodes []string `json:"nodes"`
}

var putBackMethod = method[putBack, none]{
	name: "put back", traits: traits{long: true},
	answer: func(ctx context.Context, c *received, ask putBack) (none, error) {
		return none{}, c.host().Snapshots.Restore(ctx, ask.ID, ask.Nodes, func(b apply.Back) error {
			_, err := pace{c.Caller}.say(progress{Back: &b})
			return err
		})
	},
}

// A pace keeps the helper in step with the other hosts by asking the control host.
type pace struct{ with *rpc.Caller }

func (p pace) say(how progress) (next goOn, err error) {
	if err := p.with.Say(word{Progress: &how}); err != nil {
		return next, err
	}
	if err := p.with.Hear(&next); err != nil {
		return next, err
	}
	return next, next.Fault.err()
}

// Copied reports that everything that existed before has been copied.
func (p pace) Copied(context.Context) (time.Time, error) {
	next, err := p.say(progress{Copied: true})
	return next.At, err
}

// Stood reports that the nodes are frozen.
func (p pace) Stood(_ context.Context, how engine.Pause) error {
	_, err := p.say(progress{Stood: &how})
	return err
}

// Went reports that the nodes run again.
func (p pace) Went(_ context.Context, how engine.Pause) (snapshot.All, error) {
	next, err := p.say(progress{Went: &how})
	return next.All, err
}
