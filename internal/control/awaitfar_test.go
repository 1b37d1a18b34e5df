package control_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control/releases"
	"orrery/internal/control/unattended"
	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
)

// TestAwaitFarTrial: AwaitTrial returns how a trial on several hosts ends. Either it is confirmed,
// or all hosts go back because it has failed on one.
func TestAwaitFarTrial(t *testing.T) {
	d, _ := onFarTrial(t)
	type outcome struct {
		end *observe.TrialEnd
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		end, err := releases.AwaitTrial(t.Context(), d.Session, d.site())
		done <- outcome{end, err}
	}()
	_, err := releases.Confirm(t.Context(), d.Session, d.site(), "it does well")
	d.must(err)
	if got := <-done; got.err != nil || got.end == nil || got.end.Result != observe.Confirmed ||
		got.end.Why != "it does well" {
		t.Errorf("it ended with %+v, %v", got.end, got.err)
	}
	d.wantLive(700)

	d, other := onFarTrial(t)
	h := other.Host("sv2", "toykat", nil)
	r, err := h.Releases.Read(t.Context())
	d.must(err)
	r.Trial.Failed = "node web1 is unhealthy"
	d.must(h.Releases.Copy(t.Context(), r))
	_, err = releases.AwaitTrial(t.Context(), d.Session, d.site())
	d.wantExit(err, problem.Reverted, "node web1 is unhealthy")
	d.wantLive(0)
	d.wantSame(0)
}

// TestFarTrialFlickers: a trial fails only if a check fails several times in a row.
func TestFarTrialFlickers(t *testing.T) {
	d, other := onFarTrial(t)
	rounds := make(chan int)
	n := 0
	other.of("toykat").Command = func(ctx context.Context, ref engine.Ref, c host.Command) error {
		if c.Args[0] != "ask" || ref.Name != "web1" {
			return nil
		}
		n++
		select {
		case rounds <- n:
		case <-ctx.Done():
			return ctx.Err()
		}
		if n%3 > 0 {
			return errors.New("it does not answer")
		}
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		over <- (&unattended.Host{Machine: other, Dirs: other.dirs, Key: "toykat", Say: func(error) {}}).
			Run(ctx, apply.TriggerTrial, "")
	}()
	for <-rounds < 6 {
	}
	cancel()
	<-over
	other.of("toykat").Command = nil
	_, err := releases.Confirm(t.Context(), d.Session, d.site(), "by hand")
	d.must(err)
	d.wantLive(700)
}

// TestAwaitReturn: AwaitTrial also waits for the rollback of a trial, on one host and on several.
// It does not wait for a rollback that was interrupted.
func TestAwaitReturn(t *testing.T) {
	several, other := onFarTrial(t)
	one := newDesk(t)
	one.up()
	one.stage(700)
	_, err := releases.Switch(t.Context(), one.Session, one.site(), nil,
		releases.SwitchOptions{Release: 700, Within: hour})
	one.must(err)
	for _, d := range []*desk{one, several} {
		f, err := d.Hosts(t.Context(), d.site())
		d.must(err)
		r, err := f.Records().Read(t.Context())
		d.must(err)
		returning := r
		returning.Trial, returning.Switch = nil, &observe.Switch{To: r.Trial.Back, End: r.Trial.Back, Who: "root",
			Alone: true}
		d.must(f.Records().Write(t.Context(), returning))
		if d == several { // its other host is behind, and its part of the trial has failed
			r.Trial.Failed = "node web1 is unhealthy"
			d.must(other.Host("sv2", "toykat", nil).Releases.Copy(t.Context(), r))
		}

		letGo, err := f.LockAll(t.Context(), host.NewHolder("root", "orrery host-run"))
		d.must(err)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err = releases.AwaitTrial(ctx, d.Session, d.site())
		cancel()
		d.wantExit(err, problem.Interrupted, "the trial continues")
		letGo()

		_, err = releases.AwaitTrial(t.Context(), d.Session, d.site())
		d.wantExit(err, problem.HalfWay, "was interrupted", "orrery up")
	}
}
