package remote

import (
	"context"
	"time"

	"orrery/internal/transport/rpc"
)

// A method is a question of type Q to a host, which it answers with an A. It is declared once,
// beside the call that asks it, and listed in methods. The connection, its limits, and what the
// helper does come from the declaration.
type method[Q, A any] struct {
	name string
	traits
	answer func(ctx context.Context, c *received, ask Q) (A, error) // over there
}

// none is a question or an answer that says nothing.
type none = struct{}

// traits are how the caller of a method waits for its answer.
type traits struct {
	// maxBytes is how much a host may say at once, or 0 for defaultMaxBytes.
	maxBytes int
	// long calls may take as long as they like. The user sees how they get on, or is told that they
	// are waited for.
	long bool
	// abandoned calls are not waited for once their caller has gone: they change nothing on the host,
	// or half of them counts for nothing. All others may be doing something by then, and say what came
	// of it: a caller who removes what has been received must not do so beside the call that still
	// receives it.
	abandoned bool
	// displayed calls have their progress shown by their callers.
	displayed bool
	// stop is how long the host may take to end a call that is not abandoned, or nil for stopTimeout.
	stop *time.Duration
}

// What a host may say at once: a list of all nodes or layers may be long where there are thousands.
const (
	defaultMaxBytes = 1 << 20
	listMaxBytes    = 16 << 20
)

// A question is the first message of a talk.
type question[Q any] struct {
	place
	Ask Q `json:"ask,omitzero"`
}

// asked is a method of any types, as the helper knows it.
type asked interface {
	about() (string, traits)
	serve(ctx context.Context, h *helper, with *rpc.Caller) (any, error)
}

func (m *method[Q, A]) about() (string, traits) { return m.name, m.traits }

// serve answers the question that a caller is about to send.
func (m *method[Q, A]) serve(ctx context.Context, h *helper, with *rpc.Caller) (any, error) {
	var q question[Q]
	if err := with.Hear(&q); err != nil {
		return nil, err
	}
	return m.answer(asking(ctx, with), &received{Caller: with, helper: h, at: q.place}, q.Ask)
}

// A received call is one that the helper answers.
type received struct {
	*rpc.Caller
	helper *helper
	at     place
}

// host returns the host that the call is about.
func (c *received) host() *lent { return c.helper.of(c.at) }

// detail tells the caller how far the call has come.
func (c *received) detail(text string) { _ = c.Say(word{Detail: text}) }

// call asks a host as a site has it, and waits for the answer.
func (m *method[Q, A]) call(ctx context.Context, f *far, ask Q) (A, error) {
	return m.ask(ctx, f.Link, f.at, ask, nil)
}

// ask asks a host and waits for the answer. When ctx ends, the helper must end the call, which is
// waited for, but no longer than stopTimeout: what it did until then counts. Hear, unless it is
// nil, gets what is said on the way.
func (m *method[Q, A]) ask(ctx context.Context, l *Link, at place, ask Q,
	hear func(*rpc.Talk, *word) error) (answer A, err error) {
	t, err := m.begin(ctx, l, at, ask)
	if err != nil {
		return answer, err
	}
	defer t.Close()
	if _, ok := any(answer).(none); ok {
		return answer, t.result(ctx, hear, nil)
	}
	err = t.result(ctx, hear, &answer)
	return answer, err
}

// begin asks a host something. The caller closes the talk.
func (m *method[Q, A]) begin(ctx context.Context, l *Link, at place, ask Q) (*talk, error) {
	return l.begin(ctx, m.name, m.traits, question[Q]{at, ask})
}

// methods returns all that a helper answers.
func methods() []asked {
	return []asked{
		&greetMethod, &inspectMethod, &pathsMethod, &outfitMethod, &experimentMethod,
		&holdMethod, &sweepMethod, &observeMethod, &setDrainedMethod, &drainedMethod, &forgetMethod, &markMethod,
		&publicKeyMethod,
		&nodesMethod, &probeMethod, &describeMethod, &stepMethod, &settleMethod, &leftMethod, &tookMethod, &meterMethod,
		&releasesMethod, &writeReleasesMethod, &copyReleasesMethod, &editionsMethod, &sendEditionMethod, &keepEditionMethod,
		&receiveMethod,
		&secretMethod, &keepSecretMethod, &savePlanMethod, &twinsMethod, &keepTwinMethod, &forgetTwinMethod, &fillTwinMethod,
		&snapshotsMethod, &snapshotSizeMethod, &restoringMethod, &captureMethod, &keepSnapshotMethod, &removeSnapshotMethod,
		&putBackMethod,
		&giveBackupMethod, &findBackupMethod, &layBackupMethod, &restorePartMethod, &advanceRestoreMethod,
		&volumesMethod, &mirrorVolumesMethod, &verifyVolumesMethod, &layVolumeMethod, &adoptionsMethod, &adoptVolumesMethod,
		&layersMethod, &verifyLayerMethod, &removeLayersMethod, &layerMethod, &giveMethod, &takeMethod,
		&journalMethod, &entriesMethod, &logMethod,
	}
}
