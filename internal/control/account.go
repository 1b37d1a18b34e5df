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

// An Account is the entries of something in a site's journal.
type Account struct {
	books map[string]*book // by host
	run   string           // by which the entries know one another
	began time.Time
}

// A book is the journal on one host.
type book struct {
	apply.Journal
	turn sync.Mutex
}

// now notes something that has happened just now. Steps end at the same time; what is noted of them
// is in the order of its times.
func (b *book) now(e journal.Entry) error {
	b.turn.Lock()
	defer b.turn.Unlock()
	e.Time = time.Now()
	return b.Add(e)
}

// all adds an entry to the journal of each host.
func (r *Account) all(e journal.Entry) error {
	var err error
	for _, j := range r.books {
		err = errors.Join(err, j.Add(e))
	}
	return err
}

// close closes the journals.
func (r *Account) close() {
	for _, j := range r.books {
		_ = j.Close() // every entry has been written by then
	}
}

// begin notes in a site's journals on its hosts that something begins.
func begin(ctx context.Context, f *apply.Fleet, command string) (*Account, error) {
	r := &Account{books: map[string]*book{}, began: time.Now()}
	r.run = fmt.Sprintf("%x", r.began.UnixNano())
	for _, h := range f.All {
		j, err := h.Runs.OpenJournal(ctx)
		if err != nil {
			r.close()
			return nil, err
		}
		r.books[h.Name] = &book{Journal: j}
	}
	if err := r.all(journal.Entry{Time: r.began, Run: r.run, Kind: "begin", Who: Who(), Command: command}); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// end notes how it ended.
func (r *Account) end(result string) error {
	defer r.close()
	return r.all(journal.Entry{Time: time.Now(), Run: r.run, Kind: "end", Result: result,
		Seconds: time.Since(r.began).Seconds()})
}

// outcome returns how something ended that may have failed.
func outcome(err error, redact func(string) string) string {
	if err == nil {
		return "done"
	}
	return redact(err.Error())
}

// Note adds to a site's journal what was done to it outside a plan.
func (c *Session) Note(s *site.Site, command, result string) error {
	return noted(c, s, command, func() string { return result })
}

// noted notes what is done beside plans, and how it ended.
func noted(c *Session, s *site.Site, command string, do func() string) error {
	ctx := context.Background()      // it has been done
	f, _, err := c.Call(s).Bare(ctx) // those that answer
	if err != nil {
		return err
	}
	record, err := begin(ctx, f, command)
	if err != nil {
		return err
	}
	return record.end(do())
}

// journalled notes in the journal that something is done, and how it ended.
func journalled(ctx context.Context, c *Session, f *apply.Fleet, do func(*Account) error) error {
	record, err := begin(ctx, f, c.Command)
	if err != nil {
		return err
	}
	err = do(record)
	return errors.Join(err, record.end(outcome(err, f.Redact)))
}

// tookTimeout is how long the display of a plan waits to be told how long a step took before.
const tookTimeout = 10 * time.Second

// carryOut carries out a plan, shows it, and notes every step as an entry of this kind on its host.
func (r *Account) carryOut(ctx context.Context, show Watcher, f *apply.Fleet, kind string, p *plan.Plan,
	parallel int) *apply.Result {
	watch := show.Steps(p, func(s *plan.Step) time.Duration {
		ctx, cancel := context.WithTimeout(ctx, tookTimeout)
		defer cancel()
		took, _ := f.Took(ctx, s) // a step is shown without what is not known
		return took
	})
	defer watch.Close()
	noted := &recorded{StepWatcher: watch, Account: r, kind: kind, redact: f.Redact, began: map[int]time.Time{}}
	return apply.Run(ctx, p, f.StartRun(), noted, parallel)
}

// CarryOut does steps, which say on which host they are done, within something that is locked, and
// returns what went wrong with them.
func (r *Account) CarryOut(ctx context.Context, show Watcher, f *apply.Fleet, steps []*plan.Step) error {
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
		err = errors.Join(err, fmt.Errorf("%s: %s: %w", f.Step.Title(), f.Step.Kind, f.Err))
	}
	if err == nil && len(result.Skipped) > 0 {
		err = context.Cause(ctx)
	}
	return err
}

// recorded keeps the journal of what a watcher sees.
type recorded struct {
	StepWatcher
	*Account
	kind   string // of its entries
	redact func(string) string
	mu     sync.Mutex
	began  map[int]time.Time
}

func (r *recorded) Begin(s *plan.Step) {
	r.mu.Lock()
	r.began[s.N] = time.Now()
	r.mu.Unlock()
	r.StepWatcher.Begin(s)
}

func (r *recorded) Detail(s *plan.Step, text string) { r.StepWatcher.Detail(s, r.redact(text)) }
func (r *recorded) Waits(s *plan.Step, text string)  { r.StepWatcher.Waits(s, r.redact(text)) }

func (r *recorded) End(s *plan.Step, err error) {
	result := "done"
	if err != nil {
		result = r.redact(err.Error())
	}
	r.mu.Lock()
	began := r.began[s.N]
	r.mu.Unlock()
	// A journal that cannot be written does not stop a run half way; the end of the run says so.
	if j, ok := r.books[s.Host]; ok {
		_ = j.now(journal.Entry{Run: r.run, Kind: r.kind, Step: s.String(), Result: result,
			Seconds: time.Since(began).Seconds()})
	}
	r.StepWatcher.End(s, err)
}
