package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"orrery/internal/control"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/run"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/strict/jsonlimit"
	"orrery/internal/text/sanitize"
)

// An event is a message about a run, sent by the host that measures to the requesting host.
type event struct {
	Kind    string        `json:"kind"`
	Test    string        `json:"test,omitempty"`
	Setting string        `json:"setting,omitempty"`
	Text    string        `json:"text,omitempty"`
	N       int           `json:"n,omitempty"`
	Of      int           `json:"of,omitempty"`
	For     time.Duration `json:"for,omitempty"`
	Share   float64       `json:"share,omitempty"`
}

// The kinds of events: a line, and the methods of a Watcher.
const (
	eventLine         = "line"
	eventRound        = "round"
	eventTrial        = "trial"
	eventFailure      = "failed"
	eventRenewing     = "renewing"
	eventWaiting      = "waiting"
	eventResumed      = "resumed"
	eventNotResumed   = "apart"
	eventObserverCost = "watched"
)

// An eventSender is the Watcher on the host that measures. It sends what it is told to the requesting
// host.
type eventSender struct{ tell func(string) }

func (t eventSender) send(e event) {
	text, err := json.Marshal(e)
	if err == nil { // it has only numbers that JSON supports, except perhaps a share
		t.tell(string(text))
	}
}

func (t eventSender) Round(n, of int) { t.send(event{Kind: eventRound, N: n, Of: of}) }
func (t eventSender) Trial(test, setting string, left time.Duration) {
	t.send(event{Kind: eventTrial, Test: test, Setting: setting, For: left})
}
func (t eventSender) Failed(test, setting string, err error) {
	t.send(event{Kind: eventFailure, Test: test, Setting: setting, Text: err.Error()})
}
func (t eventSender) Renewing(n int) { t.send(event{Kind: eventRenewing, N: n}) }
func (t eventSender) Waiting(why string, timeout time.Duration) {
	t.send(event{Kind: eventWaiting, Text: why, For: timeout})
}
func (t eventSender) Resumed(dir string, rounds int) {
	t.send(event{Kind: eventResumed, Text: dir, N: rounds})
}
func (t eventSender) NotResumed(dir, why string) {
	t.send(event{Kind: eventNotResumed, Text: dir + "\n" + why})
}
func (t eventSender) ObserverCost(share float64) {
	t.send(event{Kind: eventObserverCost, Share: share})
}

// Close does nothing: the requesting host knows from the next event that the rounds are over.
func (eventSender) Close() {}

// Deferred collects the messages about nodes that are recreated.
func (t eventSender) Deferred() (w control.Watcher, show func()) {
	var mutex sync.Mutex
	var kept []string
	keep := func(text string) {
		mutex.Lock()
		defer mutex.Unlock()
		kept = append(kept, text)
	}
	return stepReporter{keep}, func() {
		mutex.Lock()
		defer mutex.Unlock()
		for _, text := range kept {
			t.line(text)
		}
	}
}

func (t eventSender) line(text string) { t.send(event{Kind: eventLine, Text: text}) }

// stepReporter reports each step that ends as a line.
type stepReporter struct{ line func(string) }

func (s stepReporter) Steps(*plan.Plan, func(*plan.Step) time.Duration) control.StepWatcher { return s }
func (s stepReporter) Bytes(string) control.ByteWatcher                                     { return noBytes{} }
func (s stepReporter) Event(e control.Event)                                                { s.line(e.Text) }
func (s stepReporter) Begin(*plan.Step)                                                     {}
func (s stepReporter) Detail(*plan.Step, string)                                            {}
func (s stepReporter) Waits(step *plan.Step, text string) {
	s.line(step.Doing() + ": " + text)
}
func (s stepReporter) Close() {}

func (s stepReporter) End(step *plan.Step, err error) {
	if err != nil {
		s.line(fmt.Sprintf("%s: %s: %v", step.Title(), step.Kind.Verb(), err))
		return
	}
	s.line(fmt.Sprintf("%s: %s", step.Title(), step.Kind.Verb()))
}

type noBytes struct{}

func (noBytes) Add(int64) {}
func (noBytes) Close()    {}

// Limits for the messages of one run. No honest run exceeds them; a host that does is cut off.
const (
	maxLines     = 20_000
	maxTextRunes = 1000 // letters of a text
)

// An eventReceiver passes the messages of a run on another host to a Watcher, if they are plausible. They
// must concern existing tests and settings, and must not be repeated if they can occur only once.
type eventReceiver struct {
	Watcher
	host   string
	units  []string // tests
	places []string // settings
	line   func(string)
	lines  int
	round  int
	failed map[[2]string]bool
}

func newEventReceiver(w Watcher, host string, e *experiment.Experiment, line func(string)) *eventReceiver {
	h := &eventReceiver{Watcher: w, host: host, line: line, places: []string{experiment.Bare, experiment.Control},
		round:  -1,
		failed: map[[2]string]bool{}}
	for _, u := range run.Units(e) {
		h.units = append(h.units, u.Title)
	}
	for _, s := range e.Settings {
		h.places = append(h.places, s.Name)
	}
	return h
}

// handleMessage handles one message from the host.
func (h *eventReceiver) handleMessage(text string) error {
	var e event
	if err := jsonlimit.Unmarshal([]byte(text), &e); err != nil {
		return h.refuse("its messages about the run cannot be read")
	}
	said := displayText(e.Text)
	known := slices.Contains(h.units, e.Test) && slices.Contains(h.places, e.Setting)
	switch e.Kind {
	case eventLine, eventResumed, eventNotResumed, eventObserverCost:
		if h.lines++; h.lines > maxLines {
			return h.refuse("it sent too many messages about the run")
		}
	}
	switch {
	case e.Kind == eventLine:
		h.line(said)
	case e.Kind == eventResumed:
		h.Resumed(h.host+":"+said, max(0, e.N))
	case e.Kind == eventNotResumed:
		dir, why, _ := strings.Cut(e.Text, "\n")
		h.NotResumed(h.host+":"+displayText(dir), displayText(why))
	case e.Kind == eventObserverCost:
		h.ObserverCost(e.Share)
	case e.Kind == eventRound && e.N > h.round && e.N <= maxRemoteRounds && e.Of <= maxRemoteRounds:
		h.round = e.N
		h.Round(e.N, e.Of)
	case e.Kind == eventTrial && known:
		h.Trial(e.Test, e.Setting, max(0, e.For))
	case e.Kind == eventFailure && known && !h.failed[[2]string{e.Test, e.Setting}]:
		h.failed[[2]string{e.Test, e.Setting}] = true
		h.Failed(e.Test, e.Setting, errors.New(said))
	case e.Kind == eventRenewing:
		h.Renewing(e.N)
	case e.Kind == eventWaiting:
		h.Waiting(said, max(0, e.For))
	}
	return nil
}

// displayText returns a host's text in a form that is safe to display.
func displayText(text string) string { return problem.Truncate(sanitize.Line(text), maxTextRunes) }

// maxRemoteRounds is the largest number of rounds of an experiment.
const maxRemoteRounds = 1000

func (h *eventReceiver) refuse(why string) error {
	return problem.New(problem.Failed, "%s", why).At("host " + h.host).
		Try("check who has root access there, or use another host with orrery lab run --host")
}
