package lab

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/lab/experiment"
	"orrery/internal/plan"
	"orrery/internal/problem"
)

// heard is a Watcher that records what it is told.
type heard struct {
	Watcher
	said []string
}

func (h *heard) note(format string, args ...any) {
	h.said = append(h.said, fmt.Sprintf(format, args...))
}

func (h *heard) Round(n, of int)                        { h.note("round %d of %d", n, of) }
func (h *heard) Trial(test, in string, d time.Duration) { h.note("trial %s %s %v", test, in, d) }
func (h *heard) Failed(test, in string, err error)      { h.note("failed %s %s %v", test, in, err) }
func (h *heard) Renewing(n int)                         { h.note("renewing %d", n) }
func (h *heard) Waiting(why string, d time.Duration)    { h.note("waiting %s %v", why, d) }
func (h *heard) Resumed(dir string, rounds int)         { h.note("resumed %s %d", dir, rounds) }
func (h *heard) NotResumed(dir, why string)             { h.note("apart %s %s", dir, why) }
func (h *heard) ObserverCost(share float64)             { h.note("watched %v", share) }

// listening returns a Watcher, and a function by which a host sends messages about a run of two
// tests in one setting.
func listening(t *testing.T) (to *heard, hear func(string) error) {
	t.Helper()
	e, err := experiment.Parse("x.toml",
		[]byte("[setting.veth]\n[test.cpu]\nkind = \"cpu\"\n[test.load]\nkind = \"cpu\"\n"), "")
	if err != nil {
		t.Fatal(err)
	}
	to = &heard{}
	return to, newEventReceiver(to, "sv2", e, func(text string) { to.note("line %s", text) }).handleMessage
}

// TestTold: the Watcher receives the messages that a run sends on another host.
func TestTold(t *testing.T) {
	to, hear := listening(t)
	from := eventSender{func(text string) {
		if err := hear(text); err != nil {
			t.Error(err)
		}
	}}
	from.Resumed("/bundles/x", 3)
	from.NotResumed("/bundles/y", "another kernel")
	from.Renewing(1)
	from.Waiting("a build", time.Minute)
	from.Round(0, 10)
	from.Trial("cpu", "veth", 2*time.Second)
	from.Failed("load", experiment.Bare, errors.New("no memory"))
	from.Round(1, 10)
	from.ObserverCost(0.25)
	w, show := from.Deferred()
	step := &plan.Step{Kind: plan.CreateNode, Subject: "web"}
	under := w.Steps(nil, nil)
	under.End(step, nil)
	under.End(step, errors.New("no room"))
	if n := len(to.said); n != 9 {
		t.Errorf("before nodes that are made anew are shown, said was %q", to.said)
	}
	show()
	want := []string{
		"resumed sv2:/bundles/x 3", "apart sv2:/bundles/y another kernel", "renewing 1", "waiting a build 1m0s",
		"round 0 of 10", "trial cpu veth 2s",
		"failed load bare no memory", "round 1 of 10", "watched 0.25", "line " + step.Title() + ": create",
		"line " + step.Title() + ": create: no room",
	}
	if !slices.Equal(to.said, want) {
		t.Errorf("heard was %q\nnot %q", to.said, want)
	}
}

// TestHostile: a Watcher does not receive messages about unknown tests or settings, repetitions of
// what occurs once, or too many messages.
func TestHostile(t *testing.T) {
	to, hear := listening(t)
	for _, text := range []string{
		`{"kind":"trial","test":"other","setting":"veth"}`, `{"kind":"trial","test":"cpu","setting":"other"}`,
		`{"kind":"failed","test":"other","setting":"veth","text":"x"}`,
		`{"kind":"round","n":1001,"of":10}`, `{"kind":"round","n":1,"of":1001}`, `{"kind":"nothing"}`,
	} {
		if err := hear(text); err != nil || len(to.said) > 0 {
			t.Errorf("%s: %v, and heard was %q", text, err, to.said)
		}
	}
	for _, text := range []string{
		`{"kind":"round","n":1000,"of":1000}`, `{"kind":"round","n":1000,"of":1000}`, `{"kind":"round","n":999,"of":1000}`,
		`{"kind":"failed","test":"cpu","setting":"veth","text":"a\u001b[2Jb"}`,
		`{"kind":"failed","test":"cpu","setting":"veth","text":"twice"}`,
		`{"kind":"trial","test":"cpu","setting":"` + experiment.Control + `","for":-1}`,
		`{"kind":"resumed","text":"x","n":-1}`, `{"kind":"waiting","text":"x","for":-1}`,
	} {
		if err := hear(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	said := strings.Join(to.said, "\n")
	if len(to.said) != 5 || strings.Contains(said, "\x1b") || strings.Contains(said, "twice") ||
		strings.Contains(said, "-1") {
		t.Errorf("heard was %q", to.said)
	}
	if err := hear("{"); problem.ExitCode(err) != int(problem.Failed) || !strings.Contains(err.Error(), "sv2") {
		t.Errorf("what is no JSON: %v", err)
	}
	lines := 1 // the message that the run resumes
	for ; lines < maxLines; lines++ {
		if err := hear(`{"kind":"line","text":"x"}`); err != nil {
			t.Fatalf("line %d: %v", lines, err)
		}
	}
	if err := hear(`{"kind":"watched"}`); err == nil {
		t.Error("a host may say more than it can have done")
	}
}
