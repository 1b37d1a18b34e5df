package control

import (
	"fmt"
	"time"

	"orrery/internal/apply"
	"orrery/internal/plan"
)

// A Watcher displays the progress of an operation. It may be called from several goroutines.
type Watcher interface {
	// Steps returns the watcher for the steps of a plan that is about to be carried out. Took
	// returns how long a step took last time, or 0 if unknown.
	Steps(p *plan.Plan, took func(*plan.Step) time.Duration) StepWatcher
	// Bytes returns the watcher for the bytes that an operation, described by what, has moved.
	Bytes(what string) ByteWatcher
	// Event reports an event to the caller at once.
	Event(e Event)
}

// A StepWatcher is told about steps, and closed when the plan has been carried out.
type StepWatcher interface {
	apply.Watcher
	Close()
}

// A ByteWatcher is told about bytes that have been moved, and closed after the last ones.
type ByteWatcher interface {
	Add(bytes int64)
	Close()
}

// An Event is something that the caller should know while an operation is under way.
type Event struct {
	Kind EventKind
	Site string // the key of the site, or "" if the event concerns no site
	Text string // the message for people, one line without a full stop
	Err  error  // the error, if Kind is Trouble, or nil if Text is about several
}

// An EventKind is the kind of an event.
type EventKind string

// The kinds of events.
const (
	Notice   EventKind = "notice"   // something that may be unexpected
	Trouble  EventKind = "trouble"  // an error that does not end the operation, or that it will return
	Outcome  EventKind = "outcome"  // something done on the way that the caller did not ask for
	Orphan   EventKind = "orphan"   // a volume that no node uses any more
	Progress EventKind = "progress" // progress of something that has neither steps nor bytes
)

// Outcome reports something that was done on the way.
func (c *Session) Outcome(site, format string, args ...any) {
	c.Watcher.Event(Event{Kind: Outcome, Site: site, Text: fmt.Sprintf(format, args...)})
}

// Notice reports something that may be unexpected.
func (c *Session) Notice(site, format string, args ...any) {
	c.Watcher.Event(Event{Kind: Notice, Site: site, Text: fmt.Sprintf(format, args...)})
}

// Trouble reports an error that does not end the operation.
func (c *Session) Trouble(site string, err error) {
	c.Watcher.Event(Event{Kind: Trouble, Site: site, Text: err.Error(), Err: err})
}
