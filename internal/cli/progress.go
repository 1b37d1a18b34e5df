package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"orrery/internal/apply"
	"orrery/internal/journal"
	"orrery/internal/plan"
	"orrery/internal/visible"
)

// progress shows a run: bars on a terminal, otherwise plain lines.
type progress interface {
	apply.Watcher
	Close()
}

func newProgress(w io.Writer, p *plan.Plan) progress {
	if f, ok := screen(w); ok {
		return newBars(f, p)
	}
	return &lines{w: w, total: len(p.Steps), began: map[int]time.Time{}}
}

// lines prints a line when a step has ended.
type lines struct {
	mu    sync.Mutex
	w     io.Writer
	total int
	done  int
	began map[int]time.Time
}

func (l *lines) Begin(s *plan.Step) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began[s.N] = time.Now()
}

func (l *lines) Detail(*plan.Step, string) {}

func (l *lines) End(s *plan.Step, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done++
	result := "ok"
	if err != nil {
		result = "FAILED"
	}
	fmt.Fprintf(l.w, "[%d/%d] %s: %s: %s (%.2f s)\n", l.done, l.total, s.Title(), s.Kind, result, time.Since(l.began[s.N]).Seconds())
}

func (l *lines) Close() {}

// bars shows one bar for the whole and, for each step under way, a line that says what it does.
type bars struct {
	all   *mpb.Progress
	total *mpb.Bar
	mu    sync.Mutex
	lines map[int]*line
}

type line struct {
	bar  *mpb.Bar
	mu   sync.Mutex
	text string
}

func newBars(f *os.File, p *plan.Plan) *bars {
	all := mpb.New(mpb.WithOutput(f), mpb.WithWidth(40), mpb.WithRefreshRate(100*time.Millisecond))
	total := all.AddBar(int64(len(p.Steps)), mpb.BarPriority(1<<30),
		mpb.PrependDecorators(decor.Name(visible.Line(p.Site)+" "), decor.CountersNoUnit("%d/%d")),
		mpb.AppendDecorators(decor.Elapsed(decor.ET_STYLE_GO)))
	return &bars{all: all, total: total, lines: map[int]*line{}}
}

func (b *bars) Begin(s *plan.Step) {
	l := &line{text: string(s.Kind)}
	l.bar = b.all.New(0, mpb.NopStyle(), mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name("  "+visible.Line(s.Title()), decor.WCSyncSpaceR), decor.Any(func(decor.Statistics) string {
			l.mu.Lock()
			defer l.mu.Unlock()
			return " " + l.text
		})))
	b.mu.Lock()
	b.lines[s.N] = l
	b.mu.Unlock()
}

func (b *bars) line(s *plan.Step) *line {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lines[s.N]
}

func (b *bars) Detail(s *plan.Step, text string) {
	l := b.line(s)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = string(s.Kind) + ": " + visible.Line(text)
}

func (b *bars) End(s *plan.Step, err error) {
	if err != nil {
		fmt.Fprintf(b.all, "  %s: %s: FAILED\n", visible.Line(s.Title()), s.Kind)
	}
	b.line(s).bar.SetTotal(-1, true)
	b.total.Increment()
}

func (b *bars) Close() {
	b.total.EnableTriggerComplete()
	b.total.Abort(false)
	b.all.Wait()
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
