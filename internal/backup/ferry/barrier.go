package ferry

import (
	"context"
	"time"

	"orrery/internal/engine"
	"orrery/internal/snapshot"
)

// A Barrier keeps the hosts of a backup in step.
type Barrier interface {
	snapshot.Barrier
	// Read reports that everything was read once, and waits for the other hosts, however long that
	// takes.
	Read(ctx context.Context) error
	// Layers reports the content digests of the layers that the nodes of this host use. It waits
	// until all hosts have reported theirs, and returns the layers that this host must send. It is
	// called at the start, and again when no other run changes the site.
	Layers(ctx context.Context, held map[string]string) (give []string, err error)
	// Ready reports that little is left to read, and returns when no other run changes the site any
	// more.
	Ready(ctx context.Context) error
}

// A stage is the progress of a host.
type stage struct {
	At    string        `json:"at"`
	Pause *engine.Pause `json:"pause,omitempty"`
}

const (
	stageRead    = "read"
	stageReady   = "ready"
	stageCopied  = "copied"
	stageFrozen  = "stood"
	stageResumed = "went"
)

// stageReply is the answer to a stage.
type stageReply struct {
	At time.Time `json:"at,omitzero"`
}

// reportStage reports how far this host is, and returns the answer once all hosts have come as far.
func (l *messageConn) reportStage(at string, pause *engine.Pause) (next stageReply, err error) {
	if err = l.sendJSON(msgStage, stage{at, pause}); err == nil {
		err = l.recvJSON(msgStage, &next)
	}
	return next, err
}

// answerStage lets a host go on once all hosts have come as far.
func (l *messageConn) answerStage(ctx context.Context, s *stage, with Barrier) error {
	var next stageReply
	var err error
	switch {
	case s.At == stageRead:
		err = with.Read(ctx)
	case s.At == stageReady:
		err = with.Ready(ctx)
	case s.At == stageCopied:
		next.At, err = with.Copied(ctx)
	case s.At == stageFrozen && s.Pause != nil:
		err = with.Stood(ctx, *s.Pause)
	case s.At == stageResumed && s.Pause != nil:
		_, err = with.Went(ctx, *s.Pause)
	default:
		err = errUnexpected
	}
	if err != nil {
		return err
	}
	return l.sendJSON(msgStage, next)
}
