package control_test

import (
	"context"
	"errors"
	"testing"

	"orrery/internal/apply"
	"orrery/internal/control/releases"
	"orrery/internal/control/unattended"
	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
)

// TestAwaitFarTrial: whoever waits for a trial on several hosts learns how it ends: that it is confirmed, or that all hosts have gone back because it has failed on one.
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
	if is := <-done; is.err != nil || is.end == nil || is.end.Result != observe.Confirmed || is.end.Why != "it does well" {
		t.Errorf("it ended with %+v, %v", is.end, is.err)
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

// TestFarTrialFlickers: only a check that fails several times in a row fails the trial.
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
		over <- (&unattended.Host{Machine: other, Dirs: other.dirs, Key: "toykat", Say: func(error) {}}).Run(ctx, apply.OnTrial, "")
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
