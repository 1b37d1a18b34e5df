package screen

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"orrery/internal/plan"
	"orrery/internal/site/spec"
	"orrery/internal/text/humanize"
	"orrery/test/need"
)

// TestLines: without a terminal, a line is printed when a step begins, when it ends, and every ten
// seconds in between.
func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		build := &plan.Step{Kind: plan.BuildLayer, Subject: "debian + cam", Layer: &spec.Layer{Title: "debian + cam"}}
		check := &plan.Step{N: 1, Kind: plan.CheckNode, Subject: "web"}
		took := func(s *plan.Step) time.Duration { return map[*plan.Step]time.Duration{build: 32 * time.Second}[s] }
		w := NewProgress(&out, &plan.Plan{Site: "s", Steps: []*plan.Step{build, check}}, took)
		w.Begin(build)
		time.Sleep(5 * time.Second)
		w.Begin(check)
		w.Detail(check, "tcp 80\nrefused")
		time.Sleep(11 * time.Second)
		w.End(check, errors.New("sick"))
		w.Detail(build, "apt")
		time.Sleep(25 * time.Second)
		w.End(build, nil)
		w.Close()
		time.Sleep(time.Minute) // nothing more is printed about ended steps
		want := strings.Join([]string{
			"building layer debian + cam, about 35 s left",
			"checking node web",
			"still building layer debian + cam, 10 s, about 25 s left",
			"still checking node web, 10 s: tcp 80\\nrefused",
			"[1/2] node web: check: FAILED (11.00 s)",
			"still building layer debian + cam, 20 s, about 12 s left: apt",
			"still building layer debian + cam, 30 s, about 2 s left: apt",
			"still building layer debian + cam, 40 s: apt",
			"[2/2] layer debian + cam: build: ok (41.00 s)",
		}, "\n") + "\n"
		if got := out.String(); got != want {
			t.Errorf("printed was\n%s\nnot\n%s", got, want)
		}
	})
}

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0 s", 1500 * time.Millisecond: "2 s", 119 * time.Second: "119 s",
		125 * time.Second: "2 min 5 s", time.Hour: "60 min 0 s"} {
		if got := seconds(d); got != want {
			t.Errorf("%s is %q, not %q", d, got, want)
		}
	}
	if got := timeLeft(0, time.Second) + timeLeft(time.Second, 2*time.Second); got != "" {
		t.Errorf("without an estimate it says %q", got)
	}
}

// TestMeterWithoutTerminal: a long operation reports its progress every ten seconds, and a short
// one reports nothing.
func TestMeterWithoutTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		m := NewMeter(&out, "karoo")
		m.Add(3 << 20)
		time.Sleep(11 * time.Second)
		m.Add(5 << 20)
		time.Sleep(10 * time.Second)
		m.Close()
		time.Sleep(time.Minute)
		want := "karoo: " + humanize.Bytes(3<<20) + " in 10 s\nkaroo: " + humanize.Bytes(8<<20) + " in 20 s\n"
		if got := out.String(); got != want {
			t.Errorf("printed was %q, not %q", got, want)
		}
		NewMeter(&out, "short").Close()
		if got := out.String(); got != want {
			t.Errorf("then %q", got)
		}
	})
}

// TestOutcome: the result of renewing a virtual machine is printed with or without a terminal.
func TestOutcome(t *testing.T) {
	var out bytes.Buffer
	renew := &plan.Step{Kind: plan.RenewNode, Subject: "db"}
	w := NewProgress(&out, &plan.Plan{Site: "s", Steps: []*plan.Step{renew}}, func(*plan.Step) time.Duration { return 0 })
	w.Begin(renew)
	w.Detail(renew, "was frozen for 17 ms")
	w.End(renew, nil)
	w.Close()
	if !strings.Contains(out.String(), "node db: renew: ok: was frozen for 17 ms (") {
		t.Errorf("%q", out.String())
	}
	text := need.OnScreen(t, func(terminal *os.File) {
		b := newBars(terminal, &plan.Plan{Site: "s", Steps: []*plan.Step{renew}}, func(*plan.Step) time.Duration { return 0 })
		b.Begin(renew)
		b.Detail(renew, "was frozen for 17 ms")
		b.End(renew, nil)
		b.Close()
	})
	if !strings.Contains(text, "node db: renew: was frozen for 17 ms") {
		t.Errorf("%q", text)
	}
}
