package ferry

import (
	"context"
	"time"

	"orrery/internal/engine"
	"orrery/internal/snapshot"
)

// A Pace keeps the hosts of a backup in step.
type Pace interface {
	snapshot.Pace
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
	isRead   = "read"
	isReady  = "ready"
	isCopied = "copied"
	isStill  = "stood"
	isOver   = "went"
)

// onward is the answer to a stage.
type onward struct {
	At time.Time `json:"at,omitzero"`
}

// reach reports how far this host is, and returns the answer once all hosts have come as far.
func (l *line) reach(at string, pause *engine.Pause) (next onward, err error) {
	if err = l.tell(ofPace, stage{at, pause}); err == nil {
		err = l.hearOf(ofPace, &next)
	}
	return next, err
}

// answer lets a host go on once all hosts have come as far.
func (l *line) answer(ctx context.Context, s *stage, with Pace) error {
	var next onward
	var err error
	switch {
	case s.At == isRead:
		err = with.Read(ctx)
	case s.At == isReady:
		err = with.Ready(ctx)
	case s.At == isCopied:
		next.At, err = with.Copied(ctx)
	case s.At == isStill && s.Pause != nil:
		err = with.Stood(ctx, *s.Pause)
	case s.At == isOver && s.Pause != nil:
		_, err = with.Went(ctx, *s.Pause)
	default:
		err = errStrange
	}
	if err != nil {
		return err
	}
	return l.tell(ofPace, next)
}
