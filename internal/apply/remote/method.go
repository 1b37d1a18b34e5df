package remote

import (
	"context"
	"time"

	"orrery/internal/transport/rpc"
)

// A method is a request of type Q to a host, which answers with an A. It is declared once, beside
// the call that sends it, and listed in methods. The connection, its limits, and the action of the
// helper follow from the declaration.
type method[Q, A any] struct {
	name string
	traits
	answer func(ctx context.Context, c *received, ask Q) (A, error) // runs on the remote host
}

// none is an empty request or answer.
type none = struct{}

// traits are how the caller of a method waits for its answer.
type traits struct {
	// maxBytes is the largest message that a host may send, or 0 for defaultMaxBytes.
	maxBytes int
	// long calls have no timeout. The user sees their progress, or is told which host is being
	// waited for.
	long bool
	// abandoned calls are not waited for once their caller has gone. They change nothing on the
	// host, or a half-done change has no effect. All other calls may be changing something at that
	// time, and must report the outcome: a caller that removes received data must not do so while
	// the call still receives it.
	abandoned bool
	// displayed calls have their progress displayed by their callers.
	displayed bool
	// stop is how long the host may take to end a call that is not abandoned, or nil for
	// stopTimeout.
	stop *time.Duration
}

// Limits for one message. A list of all nodes or layers can be long where there are thousands.
const (
	defaultMaxBytes = 1 << 20
	listMaxBytes    = 16 << 20
)

// A question is the first message of a call.
type question[Q any] struct {
	place
	Ask Q `json:"ask,omitzero"`
}

// asked is a method of any types, as the helper sees it.
type asked interface {
	about() (string, traits)
	serve(ctx context.Context, h *helper, with *rpc.Caller) (any, error)
}

func (m *method[Q, A]) about() (string, traits) { return m.name, m.traits }

// serve reads the request of a caller and answers it.
func (m *method[Q, A]) serve(ctx context.Context, h *helper, with *rpc.Caller) (any, error) {
	var q question[Q]
	if err := with.Hear(&q); err != nil {
		return nil, err
	}
	return m.answer(asking(ctx, with), &received{Caller: with, helper: h, at: q.place}, q.Ask)
}

// A received call is a call that the helper answers.
type received struct {
	*rpc.Caller
	helper *helper
	at     place
}

// host returns the host that the call is about.
func (c *received) host() *lent { return c.helper.of(c.at) }

// detail reports progress to the caller.
func (c *received) detail(text string) { _ = c.Say(word{Detail: text}) }

// call sends a request about a site's part of a host and waits for the answer.
func (m *method[Q, A]) call(ctx context.Context, f *far, ask Q) (A, error) {
	return m.ask(ctx, f.Link, f.at, ask, nil)
}

// ask sends a request to a host and waits for the answer. When ctx ends, the helper must end the
// call. Ask waits for that, but no longer than stopTimeout, because the work done until then
// counts. Hear, unless it is nil, receives the messages before the answer.
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

// begin starts a call. The caller must close the talk.
func (m *method[Q, A]) begin(ctx context.Context, l *Link, at place, ask Q) (*talk, error) {
	return l.begin(ctx, m.name, m.traits, question[Q]{at, ask})
}

// methods returns all methods that a helper answers.
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
