package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/site/twin"
	"orrery/internal/wire"
)

// far is a host at the other end.
type far struct {
	*Link
	at      place
	secrets apply.Secrets
}

var _ apply.Host = (*far)(nil)

// q gives a question about this host.
func (f *far) q() question { return question{place: f.at} }

// Do does a step. Of what the helper asks for meanwhile, it gets no more than the step needs.
func (f *far) Do(ctx context.Context, s *plan.Step, say func(string)) error {
	text, err := plan.Encode(s)
	if err != nil {
		return err
	}
	q := f.q()
	q.Step = text
	return f.ask(ctx, toDo, q, func(t *wire.Talk, w *word) error {
		if w.Want != nil {
			return t.Say(f.give(ctx, s, w.Want))
		}
		say(w.Detail)
		return nil
	}, nil)
}

// Hold takes the lock. It is the helper that has it.
func (f *far) Hold(ctx context.Context, by host.Holder) (letGo func(), err error) {
	if name, err := os.Hostname(); err == nil {
		by.Who += " at " + name
	}
	q := f.q()
	q.By = &by
	t, err := f.begin(ctx, toHold, q)
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
		_ = t.result(context.WithoutCancel(ctx), nil, nil) // or it is gone, and the lock with it
		t.Close()
	}, nil
}

// Sweep ends and removes what runs that were killed left behind.
func (f *far) Sweep(ctx context.Context) error { return f.ask(ctx, toSweep, f.q(), nil, nil) }

// PublicKey gives the key of the host.
func (f *far) PublicKey(ctx context.Context) (key string, err error) {
	err = f.ask(ctx, toKey, f.q(), nil, &key)
	return key, err
}

// Observe looks at what is there.
func (f *far) Observe(ctx context.Context, engines []string) (seen observe.Host, err error) {
	q := f.q()
	q.Engines = engines
	err = f.ask(ctx, toObserve, q, nil, &seen)
	if seen.Restoring != nil {
		shownPart(seen.Restoring)
	}
	return seen, err
}

// Mark takes down over there of which site the nodes are.
func (f *far) Mark(ctx context.Context, origin string) error {
	q := f.q()
	q.Origin = origin
	return f.ask(ctx, toMark, q, nil, nil)
}

// Drained gives the mark on the host.
func (f *far) Drained(ctx context.Context) (mark *observe.Drain, err error) {
	err = f.ask(ctx, toLook, f.q(), nil, &mark)
	return mark, err
}

// SetDrained puts the mark on the host, or takes it away.
func (f *far) SetDrained(ctx context.Context, mark *observe.Drain) error {
	q := f.q()
	q.Drain = mark
	return f.ask(ctx, toDrain, q, nil, nil)
}

// Forget removes all that the host keeps of the site.
func (f *far) Forget(ctx context.Context) (left []string, err error) {
	err = f.ask(ctx, toClear, f.q(), nil, &left)
	return left, err
}

// Nodes gives the nodes that are there.
func (f *far) Nodes(ctx context.Context) ([]observe.Node, error) {
	there, err := f.Present(ctx, apply.Closely)
	return there.Nodes, err
}

// Present gives them with whose they are, which the host says along with them.
func (f *far) Present(ctx context.Context, look apply.Look) (apply.Present, error) {
	var all counted
	q := f.q()
	q.Look = look
	if err := f.ask(ctx, toNodes, q, nil, &all); err != nil {
		return apply.Present{}, err
	}
	return all.Present, f.there(all.Fault.err())
}

// Probe looks into nodes.
func (f *far) Probe(ctx context.Context, nodes []observe.Node, wants []apply.Want) error {
	q := f.q()
	q.Nodes, q.Wants = nodes, wants
	var drift [][]observe.Drift
	if err := f.ask(ctx, toProbe, q, nil, &drift); err != nil {
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

// Describe gives what is on record of layers in the store over there.
func (f *far) Describe(ctx context.Context, layers []string) (all []image.Record, err error) {
	q := f.q()
	q.Layers = layers
	if err := f.ask(ctx, toDescribe, q, nil, &all); err != nil {
		return nil, err
	}
	if len(all) != len(layers) {
		return nil, problem.New(problem.Failed, "host %s describes %d layers, and was asked for %d", f.at.Host, len(all), len(layers))
	}
	return all, nil
}

// Settle removes what was kept for undoing.
func (f *far) Settle(ctx context.Context, done []*plan.Step) error {
	q := f.q()
	for _, s := range done {
		text, err := plan.Encode(s)
		if err != nil {
			return err
		}
		q.Done = append(q.Done, text)
	}
	return f.ask(ctx, toSettle, q, nil, nil)
}

// quickly is how long something is waited for that does without an answer.
const quickly = 10 * time.Second

// Left gives what is not in the copies of volumes.
func (f *far) Left() (left []string) {
	ctx, cancel := context.WithTimeout(context.Background(), quickly)
	defer cancel()
	if err := f.ask(ctx, toList, f.q(), nil, &left); err != nil {
		return []string{err.Error()}
	}
	return left
}

// Took tells how long a step took that was like this one.
func (f *far) Took(s *plan.Step) (took time.Duration) {
	if s.Kind != plan.BuildLayer {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), quickly)
	defer cancel()
	q := f.q()
	var err error
	if q.Step, err = plan.Encode(s); err != nil || f.ask(ctx, toRecall, q, nil, &took) != nil {
		return 0
	}
	return took
}

// ReadReleases tells which releases are live.
func (f *far) ReadReleases(ctx context.Context) (r observe.Releases, err error) {
	err = f.ask(ctx, toRead, f.q(), nil, &r)
	return r, err
}

// WriteReleases takes down which are live.
func (f *far) WriteReleases(r observe.Releases) error {
	q := f.q()
	q.Release = &r
	return f.ask(context.Background(), toWrite, q, nil, nil)
}

// Clock tells how far the clock over there is ahead: by the quickest of some answers.
func (f *far) Clock(ctx context.Context) (ahead, took time.Duration, err error) {
	for i := range 5 {
		var g Greeting
		asked := time.Now()
		if err := f.Link.ask(ctx, toGreet, question{}, nil, &g); err != nil {
			return 0, 0, err
		}
		if now := time.Since(asked); i == 0 || now < took {
			took, ahead = now, g.Time.Sub(asked.Add(now/2))
		}
	}
	return ahead, took, nil
}

// CopyReleases takes down what another host has on record.
func (f *far) CopyReleases(r observe.Releases) error {
	q := f.q()
	q.Release = &r
	return f.ask(context.Background(), toCopy, q, nil, nil)
}

// Editions tells of which of some releases the host keeps a copy.
func (f *far) Editions(ctx context.Context, of []int) (all map[int]string, err error) {
	q := f.q()
	q.Editions = of
	err = f.ask(ctx, toCompare, q, nil, &all)
	return all, err
}

// Edition opens the copy of the site directory from which a release was staged.
func (f *far) Edition(ctx context.Context, release int) (io.ReadCloser, error) {
	q := f.q()
	q.Edition = release
	return f.stream(ctx, toFetch, q)
}

// KeepEdition stores one.
func (f *far) KeepEdition(ctx context.Context, release int, digest string, from io.Reader) error {
	q := f.q()
	q.Edition, q.Content = release, digest
	t, err := f.begin(ctx, toKeep, q)
	if err != nil {
		return err
	}
	defer t.Close()
	t.reminded()
	piece := make([]byte, mostOfALog)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			if err := t.Say(part{Bytes: piece[:n]}); err != nil {
				return t.failed(ctx, err)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err // the far end sees no end, and keeps nothing
		}
	}
	if err := t.Say(part{End: true}); err != nil {
		return t.failed(ctx, err)
	}
	return t.result(ctx, nil, nil)
}

// A part is a piece of an edition that is sent to be kept.
type part struct {
	Bytes []byte `json:"bytes,omitempty"`
	End   bool   `json:"end,omitempty"` // it was the last
}

// KeepWayBack keeps over there how the host goes back from a trial.
func (f *far) KeepWayBack(ctx context.Context, w apply.WayBack) error {
	q := f.q()
	q.Back = &w
	return f.ask(ctx, toReturn, q, nil, nil)
}

// KeepBoot keeps over there what the host does after a reboot.
func (f *far) KeepBoot(ctx context.Context, b apply.Boot) error {
	q := f.q()
	q.Boot = &b
	return f.ask(ctx, toBoot, q, nil, nil)
}

// Twins gives the records of twins over there.
func (f *far) Twins(ctx context.Context) (all []twin.Record, err error) {
	err = f.ask(ctx, toTell, f.q(), nil, &all)
	return all, err
}

// KeepTwin keeps the record of a twin over there.
func (f *far) KeepTwin(ctx context.Context, r twin.Record) error {
	q := f.q()
	q.Twin = &r
	return f.ask(ctx, toRegister, q, nil, nil)
}

// ForgetTwin removes what is kept of a twin over there.
func (f *far) ForgetTwin(ctx context.Context) error { return f.ask(ctx, toForget, f.q(), nil, nil) }

// Redact hides the values of secrets, of which this end knows.
func (f *far) Redact(text string) string { return f.secrets.Redact(text) }

// Runner gives the way into a node.
func (f *far) Runner(n *spec.Node) (host.Runner, error) {
	at := f.at
	at.Node = n
	in, err := f.client.RunnerAt(n.Name, at)
	return way{in, f.Link}, err
}

// A way leads into a node by way of a helper. If that is lost, that is what went wrong, and not the node.
type way struct {
	host.Runner
	link *Link
}

// Run runs a command in the node.
func (w way) Run(ctx context.Context, c host.Command) error {
	return w.link.unlessLost(ctx, w.Runner.Run(ctx, c))
}

// Put writes files of the node.
func (w way) Put(ctx context.Context, files ...host.File) error {
	return w.link.unlessLost(ctx, w.Runner.Put(ctx, files...))
}

// Dial connects from the node.
func (w way) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := w.Runner.Dial(ctx, network, address)
	return c, w.link.unlessLost(ctx, err)
}

// Console cannot be had from here yet.
func (f *far) Console(n *spec.Node) (host.Console, error) { return nil, f.onlyThere(n, "console") }

// Screen cannot be had from here yet.
func (f *far) Screen(n *spec.Node) (host.Screen, error) { return nil, f.onlyThere(n, "screen") }

func (f *far) onlyThere(n *spec.Node, what string) error {
	return problem.New(problem.Unable, "node %s is on host %s, and its %s can be had only there", n.Name, f.at.Host, what).
		Try("run orrery %s %s on that host; orrery shell %[2]s gives a terminal from here", what, n.Name)
}

// Sample reads what the kernel has counted of a node.
func (f *far) Sample(n *spec.Node) host.Sample {
	nothing := host.Sample{At: time.Now(), CPU: -1, Memory: -1, Pids: -1}
	ctx, cancel := context.WithTimeout(context.Background(), quickly)
	defer cancel()
	q := f.q()
	q.Nodes = []observe.Node{{Node: *n}}
	var s host.Sample
	if err := f.ask(ctx, toSample, q, nil, &s); err != nil {
		return nothing
	}
	return s
}

// Usage tells what a node uses.
func (f *far) Usage(ctx context.Context, n *observe.Node, before, now host.Sample) *apply.Usage {
	q := f.q()
	q.Nodes, q.Before, q.Now = []observe.Node{*n}, &before, &now
	var u *apply.Usage
	if err := f.ask(ctx, toMeasure, q, nil, &u); err != nil || u == nil {
		return &apply.Usage{Processors: -1, Memory: -1, Pids: -1, Disk: -1, Volumes: -1, Limits: n.Limits}
	}
	return u
}
