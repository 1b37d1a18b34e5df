package control

import (
	"fmt"
	"time"

	"orrery/internal/apply"
	"orrery/internal/plan"
)

// A Watcher is told how an operation goes. It may be called from several goroutines.
type Watcher interface {
	// Steps returns the watcher of the steps of a plan that is about to be carried out. Took returns how long a
	// step took the last time, or 0 if unknown.
	Steps(p *plan.Plan, took func(*plan.Step) time.Duration) StepWatcher
	// Bytes returns the watcher of how many bytes the operation called what has moved.
	Bytes(what string) ByteWatcher
	// Tell lets the caller know of something at once.
	Tell(e Event)
}

// A StepWatcher is told of steps, and closed when the plan has been carried out.
type StepWatcher interface {
	apply.Watcher
	Close()
}

// A ByteWatcher is told of bytes that have been moved, and closed when there are no more.
type ByteWatcher interface {
	Add(bytes int64)
	Close()
}

// An Event is something that a caller should know of while an operation is under way.
type Event struct {
	Kind EventKind
	Site string // its key; "": it is about no site
	Text string // what a person is told; a line, without a full stop
	Err  error  // what went wrong, of a Trouble
}

// An EventKind says what an event is about.
type EventKind string

// The kinds of events.
const (
	Notice   EventKind = "notice"   // something that may be unexpected
	Trouble  EventKind = "trouble"  // something went wrong that does not end the operation, or that will have ended it
	Outcome  EventKind = "outcome"  // something was done on the way that the caller did not ask for
	Orphan   EventKind = "orphan"   // a volume that no node uses any more
	Progress EventKind = "progress" // how far something is that has neither steps nor bytes
)

// Outcome tells the caller of something that was done on the way.
func (c *Session) Outcome(site, format string, args ...any) {
	c.Watcher.Tell(Event{Kind: Outcome, Site: site, Text: fmt.Sprintf(format, args...)})
}

// Notice tells the caller of something that may be unexpected.
func (c *Session) Notice(site, format string, args ...any) {
	c.Watcher.Tell(Event{Kind: Notice, Site: site, Text: fmt.Sprintf(format, args...)})
}

// Trouble tells of an error that does not end the operation.
func (c *Session) Trouble(site string, err error) {
	c.Watcher.Tell(Event{Kind: Trouble, Site: site, Text: err.Error(), Err: err})
}
