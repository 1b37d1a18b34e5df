package ferry

import (
	"context"
	"time"

	"orrery/internal/engine"
	"orrery/internal/snapshot"
)

// A Pace is that of all hosts that give a backup together.
type Pace interface {
	snapshot.Pace
	// Read says that all has been read once, which takes as long as it takes.
	Read(ctx context.Context) error
	// Layers says what is in the layers on which the nodes of this host stand, by their digests, and
	// gives all that this host is to give, once all hosts have said so. It is asked at first, and once
	// more when nobody else changes the site.
	Layers(ctx context.Context, held map[string]string) (give []string, err error)
	// Ready says that little is left, and gives back when nobody else changes the site any more.
	Ready(ctx context.Context) error
}

// A stage is how far a host is.
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

// onward is the answer.
type onward struct {
	At time.Time `json:"at,omitzero"`
}

// reach says how far this host is, and returns how it goes on once all have come as far.
func (l *line) reach(at string, pause *engine.Pause) (next onward, err error) {
	if err = l.tell(ofPace, stage{at, pause}); err == nil {
		err = l.hearOf(ofPace, &next)
	}
	return next, err
}

// answer lets a host go on when all have come as far.
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
