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
	callOptions
	answer func(ctx context.Context, c *serverCall, ask Q) (A, error) // runs on the remote host
}

// none is an empty request or answer.
type none = struct{}

// callOptions are how the caller of a method waits for its answer.
type callOptions struct {
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

// A request is the first message of a call.
type request[Q any] struct {
	callTarget
	Ask Q `json:"ask,omitzero"`
}

// anyMethod is a method of any types, as the helper sees it.
type anyMethod interface {
	about() (string, callOptions)
	serve(ctx context.Context, h *helper, with *rpc.ServerStream) (any, error)
}

func (m *method[Q, A]) about() (string, callOptions) { return m.name, m.callOptions }

// serve reads the request of a caller and answers it.
func (m *method[Q, A]) serve(ctx context.Context, h *helper, with *rpc.ServerStream) (any, error) {
	var q request[Q]
	if err := with.Recv(&q); err != nil {
		return nil, err
	}
	return m.answer(withRequester(ctx, with), &serverCall{ServerStream: with, helper: h, at: q.callTarget}, q.Ask)
}

// A serverCall is a call that the helper answers.
type serverCall struct {
	*rpc.ServerStream
	helper *helper
	at     callTarget
}

// host returns the host that the call is about.
func (c *serverCall) host() *servedHost { return c.helper.of(c.at) }

// detail reports progress to the caller.
func (c *serverCall) detail(text string) { _ = c.Send(response{Detail: text}) }

// call sends a request about a site's part of a host and waits for the answer.
func (m *method[Q, A]) call(ctx context.Context, f *remoteHost, ask Q) (A, error) {
	return m.ask(ctx, f.Link, f.at, ask, nil)
}

// ask sends a request to a host and waits for the answer. When ctx ends, the helper must end the
// call. Ask waits for that, but no longer than stopTimeout, because the work done until then
// counts. Hear, unless it is nil, receives the messages before the answer.
func (m *method[Q, A]) ask(ctx context.Context, l *Link, at callTarget, ask Q,
	hear func(*rpc.Stream, *response) error) (answer A, err error) {
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
func (m *method[Q, A]) begin(ctx context.Context, l *Link, at callTarget, ask Q) (*clientCall, error) {
	return l.begin(ctx, m.name, m.callOptions, request[Q]{at, ask})
}

// methods returns all methods that a helper answers.
func methods() []anyMethod {
	return []anyMethod{
		&greetMethod, &inspectMethod, &pathsMethod, &outfitMethod, &experimentMethod,
		&lockMethod, &sweepMethod, &observeMethod, &setCordonedMethod, &cordonedMethod, &forgetMethod, &setSiteIDMethod,
		&publicKeyMethod, &routineMethod, &saveRoutineMethod,
		&nodesMethod, &detectDriftMethod, &describeMethod, &stepMethod, &discardUndoMethod, &skippedFilesMethod,
		&lastDurationMethod, &readUsageMethod, &drillMethod,
		&releasesMethod, &writeReleasesMethod, &copyReleasesMethod, &editionsMethod, &sendEditionMethod, &keepEditionMethod,
		&receiveMethod,
		&secretMethod, &storeSecretMethod, &replaceSecretMethod, &removeSecretMethod, &savePlanMethod,
		&twinsMethod, &saveTwinMethod, &forgetTwinMethod, &fillTwinMethod,
		&snapshotsMethod, &snapshotSizeMethod, &restoringMethod, &captureMethod, &keepSnapshotMethod, &removeSnapshotMethod,
		&restoreMethod,
		&sendBackupMethod, &sendMissingMethod, &receiveBackupMethod, &restorePartMethod, &advanceRestoreMethod,
		&volumesMethod, &mirrorVolumesMethod, &verifyVolumesMethod, &receiveVolumeMethod, &adoptionsMethod,
		&adoptVolumesMethod,
		&layersMethod, &verifyLayerMethod, &removeLayersMethod, &layerContentMethod, &sendMethod, &receiveTransferMethod,
		&journalMethod, &readJournalMethod, &logMethod,
	}
}
