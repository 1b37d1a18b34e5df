package cli

import (
	"io"
	"sync"
	"time"

	"orrery/internal/apply"
	"orrery/internal/journal"
	"orrery/internal/plan"
)

// progress shows a run: bars on a terminal, otherwise plain lines.
type progress interface {
	apply.Watcher
	Close()
}

// An outlook tells how long a step took the last time; 0: that is not known.
type outlook func(*plan.Step) time.Duration

func newProgress(w io.Writer, p *plan.Plan, took outlook) progress {
	if f, ok := screen(w); ok {
		return newBars(f, p, took)
	}
	return newLines(w, p, took)
}

// recorded keeps the journal of what a watcher sees.
type recorded struct {
	progress
	*account
	kind   string // of its entries
	redact func(string) string
	mu     sync.Mutex
	began  map[int]time.Time
}

func (r *recorded) Begin(s *plan.Step) {
	r.mu.Lock()
	r.began[s.N] = time.Now()
	r.mu.Unlock()
	r.progress.Begin(s)
}

func (r *recorded) Detail(s *plan.Step, text string) { r.progress.Detail(s, r.redact(text)) }

func (r *recorded) End(s *plan.Step, err error) {
	result := "done"
	if err != nil {
		result = r.redact(err.Error())
	}
	r.mu.Lock()
	began := r.began[s.N]
	r.mu.Unlock()
	// A journal that cannot be written does not stop a run half way; the end of the run says so.
	_ = r.Add(journal.Entry{
		Time: time.Now(), Run: r.run, Kind: r.kind, Step: s.String(), Result: result, Seconds: time.Since(began).Seconds(),
	})
	r.progress.End(s, err)
}
