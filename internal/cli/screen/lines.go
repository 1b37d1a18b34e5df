package screen

import (
	"fmt"
	"io"
	"sync"
	"time"

	"orrery/internal/plan"
	"orrery/internal/text/sanitize"
)

// reminderInterval is how often a long step is reported to be still running.
const reminderInterval = 10 * time.Second

// lines prints a line when a step begins, when it ends, and at intervals in between.
type lines struct {
	mu    sync.Mutex
	w     io.Writer
	total int
	done  int
	took  estimator
	works map[int]*stepState
}

// A stepState is a step under way.
type stepState struct {
	began    time.Time
	estimate time.Duration // or 0 if unknown
	detail   string
	again    *time.Timer
}

func newLines(w io.Writer, p *plan.Plan, took estimator) *lines {
	return &lines{w: w, total: len(p.Steps), took: took, works: map[int]*stepState{}}
}

func (l *lines) Begin(s *plan.Step) {
	u := &stepState{began: time.Now(), estimate: l.took(s)}
	l.mu.Lock()
	defer l.mu.Unlock()
	u.again = time.AfterFunc(reminderInterval, func() { l.printReminder(s, u) })
	l.works[s.N] = u
	fmt.Fprintf(l.w, "%s%s\n", s.Doing(), timeLeft(u.estimate, 0))
}

func (l *lines) Detail(s *plan.Step, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if u := l.works[s.N]; u != nil {
		u.detail = ": " + sanitize.Line(text)
	}
}

// Waits reports at once that a step waits for another process. The wait may be long, and the user
// must know what to look at.
func (l *lines) Waits(s *plan.Step, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if u := l.works[s.N]; u != nil {
		u.detail = ": " + sanitize.Line(text)
		fmt.Fprintf(l.w, "%s%s\n", s.Doing(), u.detail)
	}
}

// printReminder reports that a step is still running.
func (l *lines) printReminder(s *plan.Step, u *stepState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.works[s.N] != u {
		return
	}
	elapsed := time.Since(u.began)
	fmt.Fprintf(l.w, "still %s, %s%s%s\n", s.Doing(), seconds(elapsed), timeLeft(u.estimate, elapsed), u.detail)
	u.again.Reset(reminderInterval)
}

func (l *lines) End(s *plan.Step, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.works[s.N]
	delete(l.works, s.N)
	u.again.Stop()
	l.done++
	result := "ok"
	if s.Kind == plan.RenewNode { // its last text is its result
		result += u.detail
	}
	if err != nil {
		result = "FAILED"
	}
	fmt.Fprintf(l.w, "[%d/%d] %s: %s: %s (%.2f s)\n", l.done, l.total, s.Title(), s.Kind.Verb(), result,
		time.Since(u.began).Seconds())
}

func (l *lines) Close() {}

// timeLeft returns how much of an estimate is left, such as ", about 50 s left". It returns "" if there
// is no estimate, or if it was too short.
func timeLeft(estimate, elapsed time.Duration) string {
	if more := estimate - elapsed; more > 0 {
		step := time.Second
		if more > 20*time.Second {
			step = 5 * time.Second
		}
		return fmt.Sprintf(", about %s left", seconds((more + step - 1).Truncate(step)))
	}
	return ""
}

// seconds formats a duration in whole seconds.
func seconds(d time.Duration) string {
	d = d.Round(time.Second)
	if d < 2*time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}
