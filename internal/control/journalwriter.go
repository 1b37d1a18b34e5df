package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"orrery/internal/apply"
	"orrery/internal/journal"
	"orrery/internal/plan"
	"orrery/internal/site"
)

// A JournalWriter records one operation in a site's journals, one journal on each host.
type JournalWriter struct {
	books map[string]*hostJournal // by host name
	run   string                  // marks the entries of this operation
	began time.Time
}

// A hostJournal is the journal on one host.
type hostJournal struct {
	apply.Journal
	turn sync.Mutex
}

// appendNow adds an entry with the current time. Steps end concurrently, so now takes the time under the
// lock, which keeps the entries ordered by time.
func (b *hostJournal) appendNow(e journal.Entry) error {
	b.turn.Lock()
	defer b.turn.Unlock()
	e.Time = time.Now()
	return b.Add(e)
}

// appendAll adds an entry to the journals of all hosts.
func (r *JournalWriter) appendAll(e journal.Entry) error {
	var err error
	for _, j := range r.books {
		err = errors.Join(err, j.Add(e))
	}
	return err
}

// close closes the journals.
func (r *JournalWriter) close() {
	for _, j := range r.books {
		_ = j.Close() // the entries have been written already
	}
}

// beginJournal opens the journals of a site on all its hosts and records that an operation begins.
func beginJournal(ctx context.Context, f *apply.Fleet, command string) (*JournalWriter, error) {
	r := &JournalWriter{books: map[string]*hostJournal{}, began: time.Now()}
	r.run = fmt.Sprintf("%x", r.began.UnixNano())
	for _, h := range f.All {
		j, err := h.Runs.OpenJournal(ctx)
		if err != nil {
			r.close()
			return nil, err
		}
		r.books[h.Name] = &hostJournal{Journal: j}
	}
	if err := r.appendAll(journal.Entry{Time: r.began, Run: r.run, Kind: "begin", Who: UserName(),
		Command: command}); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// end records the result of the operation and closes the journals.
func (r *JournalWriter) end(result string) error {
	defer r.close()
	return r.appendAll(journal.Entry{Time: time.Now(), Run: r.run, Kind: "end", Result: result,
		Seconds: time.Since(r.began).Seconds()})
}

// outcome returns the result to record in the journal: "done", or the redacted text of err.
func outcome(err error, redact func(string) string) string {
	if err == nil {
		return "done"
	}
	return redact(err.Error())
}

// Note records in a site's journal something that was done outside a plan.
func (c *Session) Note(s *site.Site, command, result string) error {
	return journalResult(c, s, command, func() string { return result })
}

// journalResult runs do, which did something outside a plan, and records the command and the result in the
// journal.
func journalResult(c *Session, s *site.Site, command string, do func() string) error {
	ctx := context.Background()                             // not the caller's, because the change is made
	f, _, err := c.Connector(s).ConnectWithoutReleases(ctx) // only the hosts that answer
	if err != nil {
		return err
	}
	record, err := beginJournal(ctx, f, command)
	if err != nil {
		return err
	}
	return record.end(do())
}

// runJournaled runs do, and records its beginning and its result in the journal.
func runJournaled(ctx context.Context, c *Session, f *apply.Fleet, do func(*JournalWriter) error) error {
	record, err := beginJournal(ctx, f, c.Command)
	if err != nil {
		return err
	}
	err = do(record)
	return errors.Join(err, record.end(outcome(err, f.Redact)))
}

// lastDurationTimeout is the time limit for looking up how long a similar step took last time.
const lastDurationTimeout = 10 * time.Second

// carryOut carries out a plan, displays it, and records each step as an entry of the given kind on
// its host.
func (r *JournalWriter) carryOut(ctx context.Context, show Watcher, f *apply.Fleet, kind string, p *plan.Plan,
	parallel int) *apply.Result {
	watch := show.Steps(p, func(s *plan.Step) time.Duration {
		ctx, cancel := context.WithTimeout(ctx, lastDurationTimeout)
		defer cancel()
		took, _ := f.LastDuration(ctx, s) // if unknown, the step is shown without a duration
		return took
	})
	defer watch.Close()
	noted := &journalingWatcher{StepWatcher: watch, JournalWriter: r, kind: kind, redact: f.Redact,
		began: map[int]time.Time{}}
	return apply.Run(ctx, p, f.StartRun(), noted, parallel)
}

// CarryOut carries out steps that already name their hosts, and returns the errors of the failed
// steps. The caller holds the site's lock.
func (r *JournalWriter) CarryOut(ctx context.Context, show Watcher, f *apply.Fleet, steps []*plan.Step) error {
	if len(steps) == 0 {
		return nil
	}
	for n, s := range steps {
		s.N = n
	}
	p := &plan.Plan{Site: f.Site().Name, Steps: steps}
	result := r.carryOut(ctx, show, f, "step", p, DefaultParallel())
	var err error
	for _, f := range result.Failed {
		err = errors.Join(err, fmt.Errorf("%s: %s: %w", f.Step.Title(), f.Step.Kind.Verb(), f.Err))
	}
	if err == nil && len(result.Skipped) > 0 {
		err = context.Cause(ctx)
	}
	return err
}

// Step records something that was done outside a plan, with its result.
func (r *JournalWriter) Step(what, result string, took time.Duration) error {
	return r.appendAll(journal.Entry{Time: time.Now(), Run: r.run, Kind: "step", Step: what, Result: result,
		Seconds: took.Seconds()})
}

// journalingWatcher is a StepWatcher that also records each step in the journal.
type journalingWatcher struct {
	StepWatcher
	*JournalWriter
	kind   string // of the journal entries
	redact func(string) string
	mu     sync.Mutex
	began  map[int]time.Time
}

func (r *journalingWatcher) Begin(s *plan.Step) {
	r.mu.Lock()
	r.began[s.N] = time.Now()
	r.mu.Unlock()
	r.StepWatcher.Begin(s)
}

func (r *journalingWatcher) Detail(s *plan.Step, text string) {
	r.StepWatcher.Detail(s, r.redact(text))
}
func (r *journalingWatcher) Waits(s *plan.Step, text string) { r.StepWatcher.Waits(s, r.redact(text)) }

func (r *journalingWatcher) End(s *plan.Step, err error) {
	result := "done"
	if err != nil {
		result = r.redact(err.Error())
	}
	r.mu.Lock()
	began := r.began[s.N]
	r.mu.Unlock()
	// If the journal cannot be written, the run continues. Recording the end of the run will report
	// the error.
	if j, ok := r.books[s.Host]; ok {
		_ = j.appendNow(journal.Entry{Run: r.run, Kind: r.kind, Step: s.String(), Result: result,
			Seconds: time.Since(began).Seconds()})
	}
	r.StepWatcher.End(s, err)
}
