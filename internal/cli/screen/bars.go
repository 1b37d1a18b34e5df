package screen

import (
	"fmt"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"orrery/internal/plan"
	"orrery/internal/text/sanitize"
)

// bars shows one bar for the whole plan and one line for each step under way.
type bars struct {
	terminal Terminal
	all      *mpb.Progress
	total    *mpb.Bar
	took     estimator
	mu       sync.Mutex // of the lines
	lines    map[int]*line
}

type line struct {
	bar  *mpb.Bar
	text string
}

func newBars(t Terminal, p *plan.Plan, took estimator) *bars {
	all, width := newContainer(t, 40)
	total := all.AddBar(int64(len(p.Steps)), mpb.BarPriority(1<<30), width,
		mpb.PrependDecorators(decor.Name(sanitize.Line(p.Site)+" "), decor.CountersNoUnit("%d/%d")),
		mpb.AppendDecorators(decor.Elapsed(decor.ET_STYLE_GO)))
	return &bars{terminal: t, all: all, total: total, took: took, lines: map[int]*line{}}
}

func (b *bars) Begin(s *plan.Step) {
	began, estimate, l := time.Now(), b.took(s), &line{text: s.Kind.Verb()}
	l.bar = b.all.New(0, mpb.NopStyle(), mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name("  "+sanitize.Line(s.Title()), decor.WCSyncSpaceR),
			decor.Any(func(decor.Statistics) string {
				b.mu.Lock()
				defer b.mu.Unlock()
				return " " + l.text + timeLeft(estimate, time.Since(began))
			})))
	b.mu.Lock()
	b.lines[s.N] = l
	b.mu.Unlock()
}

func (b *bars) Detail(s *plan.Step, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines[s.N].text = s.Kind.Verb() + ": " + sanitize.Line(text)
}

// Waits shows that a step waits for another process.
func (b *bars) Waits(s *plan.Step, text string) { b.Detail(s, text) }

func (b *bars) End(s *plan.Step, err error) {
	if err != nil {
		fmt.Fprintf(b.all, "  %s: %s: %s\n", sanitize.Line(s.Title()), s.Kind.Verb(), styled(b.terminal, "FAILED", Bad))
	}
	b.mu.Lock()
	l := b.lines[s.N]
	text := l.text
	b.mu.Unlock()
	if err == nil && s.Kind == plan.RenewNode { // its last text is its result
		fmt.Fprintf(b.all, "  %s: %s\n", sanitize.Line(s.Title()), text)
	}
	l.bar.SetTotal(-1, true)
	b.total.Increment()
}

func (b *bars) Close() {
	b.total.EnableTriggerComplete()
	b.total.Abort(false)
	b.all.Wait()
}
