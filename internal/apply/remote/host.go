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
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site/twin"
	"orrery/internal/transport/rpc"
)

// far is a remote host.
type far struct {
	*Link
	at      place
	secrets apply.Secrets
}

// The methods of a remote host, by subject.
type (
	runHost      struct{ *far }
	stateHost    struct{ *far }
	nodeHost     struct{ *far }
	releaseHost  struct{ *far }
	layerHost    struct{ *far }
	volumeHost   struct{ *far }
	snapshotHost struct{ *far }
	backupHost   struct{ *far }
	twinHost     struct{ *far }
	secretHost   struct{ *far }
	transferHost struct{ *far }
)

// Do makes the remote host do a step. The helper may request secrets during the step, and gets only
// those that the step needs.
func (f runHost) Do(ctx context.Context, s *plan.Step, say func(string)) error {
	text, err := plan.Encode(s)
	if err != nil {
		return err
	}
	_, err = stepMethod.ask(ctx, f.Link, f.at, text, func(t *rpc.Talk, w *word) error {
		if w.Want != nil {
			return t.Say(f.give(ctx, s, w.Want))
		}
		say(w.Detail)
		return nil
	})
	return err
}

var stepMethod = method[json.RawMessage, none]{
	name: "do", traits: traits{long: true, displayed: true},
	answer: func(ctx context.Context, c *received, step json.RawMessage) (none, error) {
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
	t, err := holdMethod.begin(ctx, f.Link, f.at, by)
	if err != nil {
		return nil, err
	}
	w, err := t.hearOne(ctx)
	t.unwatch()
	t.answered()
	switch {
	case err != nil:
		t.Close()
		return nil, err
	case w.Fault != nil:
		t.Close()
		return nil, f.there(w.Fault.err())
	}
	held := host.CountHeld()
	return func() {
		defer held()
		t.stopWithin(stopTimeout)
		t.Stop()
		// ignore the error: if the connection is lost, the lock is released anyway
		_ = t.result(context.WithoutCancel(ctx), nil, nil)
		t.Close()
	}, nil
}

// holdMethod holds the site's lock until the caller releases it or is gone.
var holdMethod = method[host.Holder, none]{
	name: "hold", traits: traits{abandoned: true},
	answer: func(ctx context.Context, c *received, by host.Holder) (none, error) {
		by.Pid = os.Getpid() // the caller's process id has no meaning on this host
		release, err := c.host().Runs.Lock(ctx, by)
		if err != nil {
			return none{}, err
		}
		defer release()
		if err := c.Say(word{Detail: "held"}); err != nil {
			return none{}, err
		}
		<-ctx.Done()
		return none{}, nil
	},
}

// Sweep stops and removes what killed runs left behind.
func (f runHost) Sweep(ctx context.Context) error {
	_, err := sweepMethod.call(ctx, f.far, none{})
	return err
}

var sweepMethod = method[none, none]{
	name: "sweep", traits: traits{long: true},
	answer: func(ctx context.Context, c *received, _ none) (none, error) {
		return none{}, c.host().Runs.Sweep(ctx)
	},
}

// PublicKey returns the public key of the remote host.
func (f stateHost) PublicKey(ctx context.Context) (key string, err error) {
	return publicKeyMethod.call(ctx, f.far, none{})
}

var publicKeyMethod = method[none, string]{
	name: "public key",
	answer: func(ctx context.Context, c *received, _ none) (string, error) {
		return c.host().State.PublicKey(ctx)
	},
}

// Observe returns what exists of the site on the remote host.
func (f stateHost) Observe(ctx context.Context, engines []string) (seen observe.Host, err error) {
	seen, err = observeMethod.call(ctx, f.far, engines)
	if seen.Restoring != nil {
		shownPart(seen.Restoring)
	}
	return seen, err
}

var observeMethod = method[[]string, observe.Host]{
	name: "observe", traits: traits{maxBytes: listMaxBytes, abandoned: true},
	answer: func(ctx context.Context, c *received, ask []string) (observe.Host, error) {
		return c.host().State.Observe(ctx, ask)
	},
}

// SetSiteID records on the remote host which site owns its nodes.
func (f stateHost) SetSiteID(ctx context.Context, origin string) error {
	_, err := markMethod.call(ctx, f.far, origin)
	return err
}

var markMethod = method[string, none]{
	name: "mark",
	answer: func(ctx context.Context, c *received, ask string) (none, error) {
		return none{}, c.host().State.SetSiteID(ctx, ask)
	},
}

// Cordoned returns the host's mark, or nil if it has none.
func (f stateHost) Cordoned(ctx context.Context) (mark *observe.Drain, err error) {
	return drainedMethod.call(ctx, f.far, none{})
}

var drainedMethod = method[none, *observe.Drain]{
	name: "drained", traits: traits{abandoned: true},
	answer: func(ctx context.Context, c *received, _ none) (*observe.Drain, error) {
		return c.host().State.Cordoned(ctx)
	},
}

// SetCordoned sets the host's mark, or removes it if mark is nil.
func (f stateHost) SetCordoned(ctx context.Context, mark *observe.Drain) error {
	_, err := setDrainedMethod.call(ctx, f.far, mark)
	return err
}

var setDrainedMethod = method[*observe.Drain, none]{
	name: "drain",
	answer: func(ctx context.Context, c *received, ask *observe.Drain) (none, error) {
		return none{}, c.host().State.SetCordoned(ctx, ask)
	},
}

// Forget removes all that the host keeps of the site.
func (f stateHost) Forget(ctx context.Context) (left []string, err error) {
	left, err = forgetMethod.call(ctx, f.far, none{})
	return shownAll(left), err
}

var forgetMethod = method[none, []string]{
	name: "clear", traits: traits{long: true},
	answer: func(ctx context.Context, c *received, _ none) ([]string, error) {
		return c.host().State.Forget(ctx)
	},
}

// List returns the nodes of the remote host.
func (f nodeHost) List(ctx context.Context) ([]observe.Node, error) {
	present, err := f.WithOwner(ctx, apply.Closely)
	return present.Nodes, err
}

// WithOwner returns the nodes and the site that owns them, as the remote host reports them.
func (f nodeHost) WithOwner(ctx context.Context, look apply.Look) (apply.Present, error) {
	all, err := nodesMethod.call(ctx, f.far, look)
	if err != nil {
		return apply.Present{}, err
	}
	return all.Present, f.there(all.Fault.err())
}

// counted is the nodes of a host, and why some are missing.
type counted struct {
	apply.Present
	Fault *fault `json:"fault,omitempty"`
}

var nodesMethod = method[apply.Look, counted]{
	name: "nodes", traits: traits{maxBytes: listMaxBytes, abandoned: true},
	answer: func(ctx context.Context, c *received, ask apply.Look) (counted, error) {
		present, err := c.host().Nodes.WithOwner(ctx, ask)
		return counted{present, faultOf(err)}, nil
	},
}

// DetectDrift makes the remote host look for drift in nodes.
func (f nodeHost) DetectDrift(ctx context.Context, nodes []observe.Node, wants []apply.Want) error {
	drift, err := probeMethod.call(ctx, f.far, probed{nodes, wants})
	if err != nil {
		return err
	}
	if len(drift) != len(nodes) {
		return fmt.Errorf("of %d nodes, it was said what has drifted on %d", len(nodes), len(drift))
	}
	for i := range nodes {
		nodes[i].Drift = drift[i]
	}
	return nil
}

// probed is the nodes to look into, and the desired state of each.
type probed struct {
	Nodes []observe.Node `json:"nodes"`
	Wants []apply.Want   `json:"wants"`
}

var probeMethod = method[probed, [][]observe.Drift]{
	name: "probe", traits: traits{maxBytes: listMaxBytes, long: true, abandoned: true},
	answer: func(ctx context.Context, c *received, ask probed) ([][]observe.Drift, error) {
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
	all, err = describeMethod.call(ctx, f.far, layers)
	if err != nil {
		return nil, err
	}
	if len(all) != len(layers) {
		return nil, problem.New(problem.Failed, "host %s describes %d layers, and was asked for %d", f.at.Host, len(all),
			len(layers))
	}
	return all, nil
}

var describeMethod = method[[]string, []image.Record]{
	name: "describe", traits: traits{abandoned: true},
	answer: func(ctx context.Context, c *received, ask []string) ([]image.Record, error) {
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
	_, err := settleMethod.call(ctx, f.far, steps)
	return err
}

var settleMethod = method[[]json.RawMessage, none]{
	name: "settle", traits: traits{long: true},
	answer: func(ctx context.Context, c *received, ask []json.RawMessage) (none, error) {
		done, err := apply.Decoded(ask)
		if err != nil {
			return none{}, err
		}
		return none{}, c.host().Runs.DiscardUndo(ctx, done)
	},
}

// SkippedFiles returns which files are missing in the copies of volumes.
func (f runHost) SkippedFiles(ctx context.Context) ([]string, error) {
	left, err := leftMethod.call(ctx, f.far, none{})
	return shownAll(left), err
}

var leftMethod = method[none, []string]{
	name: "left", traits: traits{abandoned: true},
	answer: func(ctx context.Context, c *received, _ none) ([]string, error) {
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
	return tookMethod.call(ctx, f.far, step)
}

var tookMethod = method[json.RawMessage, time.Duration]{
	name: "took", traits: traits{abandoned: true},
	answer: func(ctx context.Context, c *received, step json.RawMessage) (time.Duration, error) {
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
		g, err := greetMethod.ask(ctx, f.Link, place{}, none{}, nil)
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
	notes, err = savePlanMethod.call(ctx, f.far, p)
	for i := range notes {
		notes[i] = shown(notes[i])
	}
	return notes[:min(len(notes), maxNotes)], err
}

var savePlanMethod = method[apply.UnattendedPlan, []string]{
	name: "save plan",
	answer: func(ctx context.Context, c *received, ask apply.UnattendedPlan) ([]string, error) {
		return c.host().State.SavePlan(ctx, ask)
	},
}

// List returns the records of twins on the remote host.
func (f twinHost) List(ctx context.Context) (all []twin.Record, err error) {
	return twinsMethod.call(ctx, f.far, none{})
}

var twinsMethod = method[none, []twin.Record]{
	name: "twins", traits: traits{abandoned: true},
	answer: func(ctx context.Context, c *received, _ none) ([]twin.Record, error) {
		return c.host().Twins.List(ctx)
	},
}

// Save stores the record of a twin on the remote host.
func (f twinHost) Save(ctx context.Context, r twin.Record) error {
	_, err := keepTwinMethod.call(ctx, f.far, r)
	return err
}

var keepTwinMethod = method[twin.Record, none]{
	name: "keep twin",
	answer: func(ctx context.Context, c *received, ask twin.Record) (none, error) {
		return none{}, c.host().Twins.Save(ctx, ask)
	},
}

// Forget removes what the remote host keeps of a twin.
func (f twinHost) Forget(ctx context.Context) error {
	_, err := forgetTwinMethod.call(ctx, f.far, none{})
	return err
}

var forgetTwinMethod = method[none, none]{
	name: "forget twin", traits: traits{long: true},
	answer: func(ctx context.Context, c *received, _ none) (none, error) {
		return none{}, c.host().Twins.Forget(ctx)
	},
}

// Redact hides the values of secrets. The control host does this, because it knows the values.
func (f secretHost) Redact(text string) string { return f.secrets.Redact(text) }
