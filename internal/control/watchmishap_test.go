package control_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/releases"
	"orrery/internal/observe"
	"orrery/internal/problem"
)

// onShortTrial begins a trial whose time is over at once.
func (d *desk) onShortTrial() {
	d.Helper()
	if strings.Contains(d.nodes(), "db 700") {
		_, err := releases.Rollback(d.Context(), d.Session, d.site(), nil)
		d.must(err)
	}
	_, err := releases.Switch(d.Context(), d.Session, d.site(), nil,
		releases.SwitchOptions{Release: 700, Within: time.Nanosecond})
	d.must(err)
}

// TestMishapWatch: any failure while a trial is watched is reported, and does not end the watch.
// The release stays live in the end, because its checks held.
func TestMishapWatch(t *testing.T) {
	t.Parallel()
	d, m := newDesk(t), &mishaps{}
	d.machine.mishaps, d.machine.name = m, "sv1"
	d.up()
	d.stage(700)
	watch := func(name string, nth int) {
		t.Helper()
		d.onShortTrial()
		d.watch.events = nil
		m.order(name, nth)
		if err := control.Unattended(d.Session, "toykat").Run(t.Context(), apply.TriggerTrial, ""); err != nil {
			t.Errorf("%s fails, and the watch ends with %v", name, err)
		}
		end, err := releases.Confirm(t.Context(), d.Session, d.site(), "by hand")
		if err != nil || end.Result != observe.Confirmed || end.Why != "its health checks held" {
			t.Errorf("%s fails, and the trial ends as %+v, %v", name, end, err)
		}
		if strings.Contains(name, " Nodes.") {
			return // its checks are repeated in the next round
		}
		if m.happened() && !strings.Contains(d.watch.text(), string(errMishap)) {
			t.Errorf("%s fails, and nobody is told: %s", name, d.watch.text())
		}
	}
	watch("", 0)
	for _, name := range slices.Sorted(maps.Keys(m.called())) {
		watch(name, 1)
	}
	m.order("", 0)
	d.wantLive(700)
}

// TestWatchEnds: ending the process that watches does not end the trial, and another process can
// watch at once.
func TestWatchEnds(t *testing.T) {
	d := newDesk(t)
	d.up()
	d.stage(700)
	_, err := releases.Switch(t.Context(), d.Session, d.site(), nil, releases.SwitchOptions{Release: 700, Within: hour})
	d.must(err)
	for range 2 {
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("the caller has gone")
		time.AfterFunc(100*time.Millisecond, func() { cancel(gone) })
		if err := control.Unattended(d.Session, "toykat").Run(ctx, apply.TriggerTrial, ""); !errors.Is(err, gone) {
			t.Errorf("it ends with %v", err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
		end, err := releases.AwaitTrial(ctx, d.Session, d.site())
		stop()
		if !problem.Is(err, problem.Interrupted) || end != nil {
			t.Errorf("for whoever waits it ends as %+v, %v", end, err)
		}
	}
	end, err := releases.Confirm(t.Context(), d.Session, d.site(), "by hand")
	d.must(err)
	if end.Result != observe.Confirmed {
		t.Errorf("it has ended as %+v", end)
	}
}

// TestMishapAwait: if a host's state cannot be read while waiting for the end of a trial, the error
// is reported, at whatever point it occurs.
func TestMishapAwait(t *testing.T) {
	t.Parallel()
	d, m := frailDesk(t, false)
	d.up()
	d.stage(700)
	_, err := releases.Switch(t.Context(), d.Session, d.site(), nil, releases.SwitchOptions{Release: 700, Within: hour})
	d.must(err)
	for nth := 1; nth <= 4; nth++ { // the hosts are asked more than once, and again at intervals
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		m.order("sv2 Releases.Read", nth)
		end, err := releases.AwaitTrial(ctx, d.Session, d.site())
		stop()
		if !m.happened() || end != nil || err == nil || !strings.Contains(err.Error(), string(errMishap)) {
			t.Errorf("the %d. time it is asked: %+v, %v", nth, end, err)
		}
	}
}
