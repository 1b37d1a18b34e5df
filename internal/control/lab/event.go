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
	aLine    = "line"
	aRound   = "round"
	aTrial   = "trial"
	aFailure = "failed"
	renewing = "renewing"
	waiting  = "waiting"
	aResume  = "resumed"
	apart    = "apart"
	watched  = "watched"
)

// A teller is the Watcher on the host that measures. It sends what it is told to the requesting
// host.
type teller struct{ tell func(string) }

func (t teller) say(e event) {
	text, err := json.Marshal(e)
	if err == nil { // it has only numbers that JSON supports, except perhaps a share
		t.tell(string(text))
	}
}

func (t teller) Round(n, of int) { t.say(event{Kind: aRound, N: n, Of: of}) }
func (t teller) Trial(test, setting string, left time.Duration) {
	t.say(event{Kind: aTrial, Test: test, Setting: setting, For: left})
}
func (t teller) Failed(test, setting string, err error) {
	t.say(event{Kind: aFailure, Test: test, Setting: setting, Text: err.Error()})
}
func (t teller) Renewing(n int) { t.say(event{Kind: renewing, N: n}) }
func (t teller) Waiting(why string, timeout time.Duration) {
	t.say(event{Kind: waiting, Text: why, For: timeout})
}
func (t teller) Resumed(dir string, rounds int) { t.say(event{Kind: aResume, Text: dir, N: rounds}) }
func (t teller) Apart(dir, why string)          { t.say(event{Kind: apart, Text: dir + "\n" + why}) }
func (t teller) Watched(share float64)          { t.say(event{Kind: watched, Share: share}) }

// Close does nothing: the requesting host knows from the next event that the rounds are over.
func (teller) Close() {}

// Aside collects the messages about nodes that are recreated.
func (t teller) Aside() (w control.Watcher, show func()) {
	var mutex sync.Mutex
	var kept []string
	keep := func(text string) {
		mutex.Lock()
		defer mutex.Unlock()
		kept = append(kept, text)
	}
	return steps{keep}, func() {
		mutex.Lock()
		defer mutex.Unlock()
		for _, text := range kept {
			t.line(text)
		}
	}
}

func (t teller) line(text string) { t.say(event{Kind: aLine, Text: text}) }

// steps reports each step that ends as a line.
type steps struct{ line func(string) }

func (s steps) Steps(*plan.Plan, func(*plan.Step) time.Duration) control.StepWatcher { return s }
func (s steps) Bytes(string) control.ByteWatcher                                     { return nothing{} }
func (s steps) Tell(e control.Event)                                                 { s.line(e.Text) }
func (s steps) Begin(*plan.Step)                                                     {}
func (s steps) Detail(*plan.Step, string)                                            {}
func (s steps) Waits(step *plan.Step, text string) {
	s.line(step.Doing() + ": " + text)
}
func (s steps) Close() {}

func (s steps) End(step *plan.Step, err error) {
	if err != nil {
		s.line(fmt.Sprintf("%s: %s: %v", step.Title(), step.Kind, err))
		return
	}
	s.line(fmt.Sprintf("%s: %s", step.Title(), step.Kind))
}

type nothing struct{}

func (nothing) Add(int64) {}
func (nothing) Close()    {}

// Limits for the messages of one run. No honest run exceeds them; a host that does is cut off.
const (
	maxLines       = 20_000
	maxTextLetters = 1000 // letters of a text
)

// A hearing passes the messages of a run on another host to a Watcher, if they are plausible. They
// must concern existing tests and settings, and must not be repeated if they can occur only once.
type hearing struct {
	Watcher
	host   string
	units  []string // tests
	places []string // settings
	line   func(string)
	lines  int
	round  int
	failed map[[2]string]bool
}

func newHearing(w Watcher, host string, e *experiment.Experiment, line func(string)) *hearing {
	h := &hearing{Watcher: w, host: host, line: line, places: []string{experiment.Bare, experiment.Control}, round: -1,
		failed: map[[2]string]bool{}}
	for _, u := range run.Units(e) {
		h.units = append(h.units, u.Title)
	}
	for _, s := range e.Settings {
		h.places = append(h.places, s.Name)
	}
	return h
}

// hear handles one message from the host.
func (h *hearing) hear(text string) error {
	var e event
	if err := jsonlimit.Unmarshal([]byte(text), &e); err != nil {
		return h.refuse("what it tells of the run cannot be read")
	}
	said := shown(e.Text)
	known := slices.Contains(h.units, e.Test) && slices.Contains(h.places, e.Setting)
	switch e.Kind {
	case aLine, aResume, apart, watched:
		if h.lines++; h.lines > maxLines {
			return h.refuse("it tells more of the run than there is")
		}
	}
	switch {
	case e.Kind == aLine:
		h.line(said)
	case e.Kind == aResume:
		h.Resumed(h.host+":"+said, max(0, e.N))
	case e.Kind == apart:
		dir, why, _ := strings.Cut(e.Text, "\n")
		h.Apart(h.host+":"+shown(dir), shown(why))
	case e.Kind == watched:
		h.Watched(e.Share)
	case e.Kind == aRound && e.N > h.round && e.N <= maxRoundsTold && e.Of <= maxRoundsTold:
		h.round = e.N
		h.Round(e.N, e.Of)
	case e.Kind == aTrial && known:
		h.Trial(e.Test, e.Setting, max(0, e.For))
	case e.Kind == aFailure && known && !h.failed[[2]string{e.Test, e.Setting}]:
		h.failed[[2]string{e.Test, e.Setting}] = true
		h.Failed(e.Test, e.Setting, errors.New(said))
	case e.Kind == renewing:
		h.Renewing(e.N)
	case e.Kind == waiting:
		h.Waiting(said, max(0, e.For))
	}
	return nil
}

// shown returns a host's text in a form that is safe to display.
func shown(text string) string { return problem.Short(sanitize.Line(text), maxTextLetters) }

// maxRoundsTold is the largest number of rounds of an experiment.
const maxRoundsTold = 1000

func (h *hearing) refuse(why string) error {
	return problem.New(problem.Failed, "%s", why).At("host " + h.host).
		Try("see who is root there; orrery lab run --host with another host measures there")
}
