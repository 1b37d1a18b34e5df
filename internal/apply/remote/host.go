package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/observe/routine"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site/twin"
	"orrery/internal/transport/rpc"
)

// remoteHost is a remote host.
type remoteHost struct {
	*Link
	at      callTarget
	secrets apply.Secrets
}

// The methods of a remote host, by subject.
type (
	runHost      struct{ *remoteHost }
	stateHost    struct{ *remoteHost }
	nodeHost     struct{ *remoteHost }
	releaseHost  struct{ *remoteHost }
	layerHost    struct{ *remoteHost }
	volumeHost   struct{ *remoteHost }
	snapshotHost struct{ *remoteHost }
	backupHost   struct{ *remoteHost }
	twinHost     struct{ *remoteHost }
	secretHost   struct{ *remoteHost }
	transferHost struct{ *remoteHost }
)

// Do makes the remote host do a step. The helper may request secrets during the step, and gets only
// those that the step needs.
func (f runHost) Do(ctx context.Context, s *plan.Step, say func(string)) error {
	text, err := plan.Encode(s)
	if err != nil {
		return err
	}
	_, err = stepMethod.ask(ctx, f.Link, f.at, text, func(t *rpc.Stream, w *response) error {
		if w.Want != nil {
			return t.Send(f.resolveSecret(ctx, s, w.Want))
		}
		say(w.Detail)
		return nil
	})
	return err
}

var stepMethod = method[json.RawMessage, none]{
	name: "do", callOptions: callOptions{long: true, displayed: true},
	answer: func(ctx context.Context, c *serverCall, step json.RawMessage) (none, error) {
		s, err := plan.Decode(step)
		if err != nil {
			return none{}, err
		}
		return none{}, c.host().Runs.Do(ctx, s, c.detail)
	},
}

// Lock takes the lock on the remote host. The helper holds it.
func (f runHost) Lock(ctx context.Context, by host.Holder) (letGo func(), err error) {
	if name, err := os.Hostname(); err == nil {
		by.Who += " at " + name
	}
	t, err := lockMethod.begin(ctx, f.Link, f.at, by)
	if err != nil {
		return nil, err
	}
	w, err := t.recvOne(ctx)
	t.unwatch()
	t.answered()
	switch {
	case err != nil:
		t.Close()
		return nil, err
	case w.Fault != nil:
		t.Close()
		return nil, f.withHostName(w.Fault.toError())
	}
	held := host.CountLock()
	return func() {
		defer held()
		t.stopWithin(stopTimeout)
		t.Stop()
		// ignore the error: if the connection is lost, the lock is released anyway
		_ = t.result(context.WithoutCancel(ctx), nil, nil)
		t.Close()
	}, nil
}

// lockMethod holds the site's lock until the caller releases it or is gone.
var lockMethod = method[host.Holder, none]{
	name: "hold", callOptions: callOptions{abandoned: true},
	answer: func(ctx context.Context, c *serverCall, by host.Holder) (none, error) {
		by.Pid = os.Getpid() // the caller's process id has no meaning on this host
		release, err := c.host().Runs.Lock(ctx, by)
		if err != nil {
			return none{}, err
		}
		defer release()
		if err := c.Send(response{Detail: "held"}); err != nil {
			return none{}, err
		}
		<-ctx.Done()
		return none{}, nil
	},
}

// Sweep stops and removes what killed runs left behind.
func (f runHost) Sweep(ctx context.Context) error {
	_, err := sweepMethod.call(ctx, f.remoteHost, none{})
	return err
}

var sweepMethod = method[none, none]{
	name: "sweep", callOptions: callOptions{long: true},
	answer: func(ctx context.Context, c *serverCall, _ none) (none, error) {
		return none{}, c.host().Runs.Sweep(ctx)
	},
}

// PublicKey returns the public key of the remote host.
func (f stateHost) PublicKey(ctx context.Context) (key string, err error) {
	return publicKeyMethod.call(ctx, f.remoteHost, none{})
}

var publicKeyMethod = method[none, string]{
	name: "public key",
	answer: func(ctx context.Context, c *serverCall, _ none) (string, error) {
		return c.host().State.PublicKey(ctx)
	},
}

// Observe returns what exists of the site on the remote host.
func (f stateHost) Observe(ctx context.Context, engines []string) (seen observe.Host, err error) {
	seen, err = observeMethod.call(ctx, f.remoteHost, engines)
	if seen.Restoring != nil {
		sanitizeRestore(seen.Restoring)
	}
	return seen, err
}

var observeMethod = method[[]string, observe.Host]{
	name: "observe", callOptions: callOptions{maxBytes: listMaxBytes, abandoned: true},
	answer: func(ctx context.Context, c *serverCall, ask []string) (observe.Host, error) {
		return c.host().State.Observe(ctx, ask)
	},
}

// SetSiteID records on the remote host which site owns its nodes.
func (f stateHost) SetSiteID(ctx context.Context, origin string) error {
	_, err := setSiteIDMethod.call(ctx, f.remoteHost, origin)
	return err
}

var setSiteIDMethod = method[string, none]{
	name: "mark",
	answer: func(ctx context.Context, c *serverCall, ask string) (none, error) {
		return none{}, c.host().State.SetSiteID(ctx, ask)
	},
}

// Cordoned returns the host's mark, or nil if it has none.
func (f stateHost) Cordoned(ctx context.Context) (mark *observe.Drain, err error) {
	return cordonedMethod.call(ctx, f.remoteHost, none{})
}

var cordonedMethod = method[none, *observe.Drain]{
	name: "drained", callOptions: callOptions{abandoned: true},
	answer: func(ctx context.Context, c *serverCall, _ none) (*observe.Drain, error) {
		return c.host().State.Cordoned(ctx)
	},
}

// SetCordoned sets the host's mark, or removes it if mark is nil.
func (f stateHost) SetCordoned(ctx context.Context, mark *observe.Drain) error {
	_, err := setCordonedMethod.call(ctx, f.remoteHost, mark)
	return err
}

var setCordonedMethod = method[*observe.Drain, none]{
	name: "drain",
	answer: func(ctx context.Context, c *serverCall, ask *observe.Drain) (none, error) {
		return none{}, c.host().State.SetCordoned(ctx, ask)
	},
}

// Forget removes all that the host keeps of the site.
func (f stateHost) Forget(ctx context.Context) (left []string, err error) {
	left, err = forgetMethod.call(ctx, f.remoteHost, none{})
	return sanitizeList(left), err
}

var forgetMethod = method[none, []string]{
	name: "clear", callOptions: callOptions{long: true},
	answer: func(ctx context.Context, c *serverCall, _ none) ([]string, error) {
		return c.host().State.Forget(ctx)
	},
}

// List returns the nodes of the remote host.
func (f nodeHost) List(ctx context.Context) ([]observe.Node, error) {
	present, err := f.WithOwner(ctx, apply.InspectFull)
	return present.Nodes, err
}

// WithOwner returns the nodes and the site that owns them, as the remote host reports them.
func (f nodeHost) WithOwner(ctx context.Context, look apply.InspectMode) (apply.OwnedNodes, error) {
	all, err := nodesMethod.call(ctx, f.remoteHost, look)
	if err != nil {
		return apply.OwnedNodes{}, err
	}
	return all.OwnedNodes, f.withHostName(all.Fault.toError())
}

// nodesReply is the nodes of a host, and why some are missing.
type nodesReply struct {
	apply.OwnedNodes
	Fault *wireError `json:"fault,omitempty"`
}

var nodesMethod = method[apply.InspectMode, nodesReply]{
	name: "nodes", callOptions: callOptions{maxBytes: listMaxBytes, abandoned: true},
	answer: func(ctx context.Context, c *serverCall, ask apply.InspectMode) (nodesReply, error) {
		present, err := c.host().Nodes.WithOwner(ctx, ask)
		return nodesReply{present, toWireError(err)}, nil
	},
}

// DetectDrift makes the remote host look for drift in nodes.
func (f nodeHost) DetectDrift(ctx context.Context, nodes []observe.Node, wants []apply.DesiredNode) error {
	drift, err := detectDriftMethod.call(ctx, f.remoteHost, driftRequest{nodes, wants})
	if err != nil {
		return err
	}
	if len(drift) != len(nodes) {
		return fmt.Errorf("drift of %d nodes was requested, of %d reported", len(nodes), len(drift))
	}
	for i := range nodes {
		nodes[i].Drift = drift[i]
	}
	return nil
}

// driftRequest is the nodes to look into, and the desired state of each.
type driftRequest struct {
	Nodes []observe.Node      `json:"nodes"`
	Wants []apply.DesiredNode `json:"wants"`
}

var detectDriftMethod = method[driftRequest, [][]observe.Drift]{
	name: "probe", callOptions: callOptions{maxBytes: listMaxBytes, long: true, abandoned: true},
	answer: func(ctx context.Context, c *serverCall, ask driftRequest) ([][]observe.Drift, error) {
		err := c.host().Nodes.DetectDrift(ctx, ask.Nodes, ask.Wants)
		drift := make([][]observe.Drift, len(ask.Nodes))
		for i := range ask.Nodes {
			drift[i] = ask.Nodes[i].Drift
		}
		return drift, err
	},
}

// Describe returns the records of layers in the remote host's store.
func (f layerHost) Describe(ctx context.Context, layers []string) (all []image.Record, err error) {
	all, err = describeMethod.call(ctx, f.remoteHost, layers)
	if err != nil {
		return nil, err
	}
	if len(all) != len(layers) {
		return nil, problem.New(problem.Failed, "host %s described %d layers, %d were requested", f.at.Host, len(all),
			len(layers))
	}
	return all, nil
}

var describeMethod = method[[]string, []image.Record]{
	name: "describe", callOptions: callOptions{abandoned: true},
	answer: func(ctx context.Context, c *serverCall, ask []string) ([]image.Record, error) {
		return c.host().Layers.Describe(ctx, ask)
	},
}

// DiscardUndo removes what was kept for undoing.
func (f runHost) DiscardUndo(ctx context.Context, done []*plan.Step) error {
	var steps []json.RawMessage
	for _, s := range done {
		text, err := plan.Encode(s)
		if err != nil {
			return err
		}
		steps = append(steps, text)
	}
	_, err := discardUndoMethod.call(ctx, f.remoteHost, steps)
	return err
}

var discardUndoMethod = method[[]json.RawMessage, none]{
	name: "settle", callOptions: callOptions{long: true},
	answer: func(ctx context.Context, c *serverCall, ask []json.RawMessage) (none, error) {
		done, err := apply.DecodeSteps(ask)
		if err != nil {
			return none{}, err
		}
		return none{}, c.host().Runs.DiscardUndo(ctx, done)
	},
}

// SkippedFiles returns which files are missing in the copies of volumes.
func (f runHost) SkippedFiles(ctx context.Context) ([]string, error) {
	left, err := skippedFilesMethod.call(ctx, f.remoteHost, none{})
	return sanitizeList(left), err
}

var skippedFilesMethod = method[none, []string]{
	name: "left", callOptions: callOptions{abandoned: true},
	answer: func(ctx context.Context, c *serverCall, _ none) ([]string, error) {
		return c.host().Runs.SkippedFiles(ctx)
	},
}

// LastDuration returns how long a similar step took last time.
func (f runHost) LastDuration(ctx context.Context, s *plan.Step) (time.Duration, error) {
	if s.Kind != plan.BuildLayer {
		return 0, nil
	}
	step, err := plan.Encode(s)
	if err != nil {
		return 0, err
	}
	return lastDurationMethod.call(ctx, f.remoteHost, step)
}

var lastDurationMethod = method[json.RawMessage, time.Duration]{
	name: "took", callOptions: callOptions{abandoned: true},
	answer: func(ctx context.Context, c *serverCall, step json.RawMessage) (time.Duration, error) {
		s, err := plan.Decode(step)
		if err != nil {
			return 0, err
		}
		return c.host().Runs.LastDuration(ctx, s)
	},
}

// Clock returns how far the remote host's clock is ahead. It uses the fastest of several answers.
func (f runHost) Clock(ctx context.Context) (ahead, took time.Duration, err error) {
	for i := range 5 {
		asked := time.Now()
		g, err := greetMethod.ask(ctx, f.Link, callTarget{}, none{}, nil)
		if err != nil {
			return 0, 0, err
		}
		if now := time.Since(asked); i == 0 || now < took {
			took, ahead = now, g.Time.Sub(asked.Add(now/2))
		}
	}
	return ahead, took, nil
}

// SavePlan stores on the remote host what it does without the control host.
func (f stateHost) SavePlan(ctx context.Context, p apply.UnattendedPlan) (notes []string, err error) {
	notes, err = savePlanMethod.call(ctx, f.remoteHost, p)
	for i := range notes {
		notes[i] = sanitizeText(notes[i])
	}
	return notes[:min(len(notes), maxNotes)], err
}

var savePlanMethod = method[apply.UnattendedPlan, []string]{
	name: "save plan",
	answer: func(ctx context.Context, c *serverCall, ask apply.UnattendedPlan) ([]string, error) {
		return c.host().State.SavePlan(ctx, ask)
	},
}

// Routine returns how something went that is done for the site at intervals.
func (f stateHost) Routine(ctx context.Context, name string) (r routine.Record, err error) {
	r, err = routineMethod.call(ctx, f.remoteHost, name)
	r.Host, r.Made, r.Why = sanitizeText(r.Host), sanitizeText(r.Made), sanitizeText(r.Why)
	return r, err
}

var routineMethod = method[string, routine.Record]{
	name: "routine", callOptions: callOptions{abandoned: true},
	answer: func(ctx context.Context, c *serverCall, ask string) (routine.Record, error) {
		return c.host().State.Routine(ctx, ask)
	},
}

// A routineRecord says how a routine went.
type routineRecord struct {
	Name   string         `json:"name"`
	Record routine.Record `json:"record"`
}

// SaveRoutine stores on the remote host how a routine went.
func (f stateHost) SaveRoutine(ctx context.Context, name string, r routine.Record) error {
	_, err := saveRoutineMethod.call(ctx, f.remoteHost, routineRecord{name, r})
	return err
}

var saveRoutineMethod = method[routineRecord, none]{
	name: "save routine",
	answer: func(ctx context.Context, c *serverCall, ask routineRecord) (none, error) {
		return none{}, c.host().State.SaveRoutine(ctx, ask.Name, ask.Record)
	},
}

// List returns the records of twins on the remote host.
func (f twinHost) List(ctx context.Context) (all []twin.Record, err error) {
	return twinsMethod.call(ctx, f.remoteHost, none{})
}

var twinsMethod = method[none, []twin.Record]{
	name: "twins", callOptions: callOptions{abandoned: true},
	answer: func(ctx context.Context, c *serverCall, _ none) ([]twin.Record, error) {
		return c.host().Twins.List(ctx)
	},
}

// Save stores the record of a twin on the remote host.
func (f twinHost) Save(ctx context.Context, r twin.Record) error {
	_, err := saveTwinMethod.call(ctx, f.remoteHost, r)
	return err
}

var saveTwinMethod = method[twin.Record, none]{
	name: "keep twin",
	answer: func(ctx context.Context, c *serverCall, ask twin.Record) (none, error) {
		return none{}, c.host().Twins.Save(ctx, ask)
	},
}

// Forget removes what the remote host keeps of a twin.
func (f twinHost) Forget(ctx context.Context) error {
	_, err := forgetTwinMethod.call(ctx, f.remoteHost, none{})
	return err
}

var forgetTwinMethod = method[none, none]{
	name: "forget twin", callOptions: callOptions{long: true},
	answer: func(ctx context.Context, c *serverCall, _ none) (none, error) {
		return none{}, c.host().Twins.Forget(ctx)
	},
}

// Redact hides the values of secrets. The control host does this, because it knows the values.
func (f secretHost) Redact(text string) string { return f.secrets.Redact(text) }
