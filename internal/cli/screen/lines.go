package screen

import (
	"fmt"
	"io"
	"sync"
	"time"

	"orrery/internal/plan"
	"orrery/internal/text/sanitize"
)

// still is how often it is said of a long step that it goes on.
const still = 10 * time.Second

// lines prints a line when a step begins, when it has ended, and now and then in between.
type lines struct {
	mu    sync.Mutex
	w     io.Writer
	total int
	done  int
	took  outlook
	works map[int]*work
}

// A work is a step under way.
type work struct {
	began    time.Time
	estimate time.Duration // 0: none
	detail   string
	again    *time.Timer
}

func newLines(w io.Writer, p *plan.Plan, took outlook) *lines {
	return &lines{w: w, total: len(p.Steps), took: took, works: map[int]*work{}}
}

func (l *lines) Begin(s *plan.Step) {
	u := &work{began: time.Now(), estimate: l.took(s)}
	l.mu.Lock()
	defer l.mu.Unlock()
	u.again = time.AfterFunc(still, func() { l.goesOn(s, u) })
	l.works[s.N] = u
	fmt.Fprintf(l.w, "%s%s\n", s.Doing(), left(u.estimate, 0))
}

func (l *lines) Detail(s *plan.Step, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if u := l.works[s.N]; u != nil {
		u.detail = ": " + sanitize.Line(text)
	}
}

// Waits says at once that a step waits for somebody else: it may be long, and he has to be told
// what to look at.
func (l *lines) Waits(s *plan.Step, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if u := l.works[s.N]; u != nil {
		u.detail = ": " + sanitize.Line(text)
		fmt.Fprintf(l.w, "%s%s\n", s.Doing(), u.detail)
	}
}

// goesOn says of a step that it has not ended.
func (l *lines) goesOn(s *plan.Step, u *work) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.works[s.N] != u {
		return
	}
	elapsed := time.Since(u.began)
	fmt.Fprintf(l.w, "still %s, %s%s%s\n", s.Doing(), seconds(elapsed), left(u.estimate, elapsed), u.detail)
	u.again.Reset(still)
}

func (l *lines) End(s *plan.Step, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.works[s.N]
	delete(l.works, s.N)
	u.again.Stop()
	l.done++
	result := "ok"
	if s.Kind == plan.RenewNode { // what it said is what came of it
		result += u.detail
	}
	if err != nil {
		result = "FAILED"
	}
	fmt.Fprintf(l.w, "[%d/%d] %s: %s: %s (%.2f s)\n", l.done, l.total, s.Title(), s.Kind, result,
		time.Since(u.began).Seconds())
}

func (l *lines) Close() {}

// left says how much of an estimate is left, as ", about 50 s left"; nothing if there is none, or
// it has proven too short.
func left(estimate, elapsed time.Duration) string {
	if more := estimate - elapsed; more > 0 {
		step := time.Second
		if more > 20*time.Second {
			step = 5 * time.Second
		}
		return fmt.Sprintf(", about %s left", seconds((more + step - 1).Truncate(step)))
	}
	return ""
}

// seconds writes a time without parts of a second.
func seconds(d time.Duration) string {
	d = d.Round(time.Second)
	if d < 2*time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}
