package fake_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/fake"
	"orrery/internal/host"
	"orrery/internal/observe"
)

func TestFail(t *testing.T) {
	e := fake.New()
	full := errors.New("disk is full")
	e.Fail("Create", "a", 2, full)
	a, b := nodeOf("a", 1), nodeOf("b", 2)
	for range 2 {
		if err := e.Create(t.Context(), a); !errors.Is(err, full) {
			t.Fatalf("got %v", err)
		}
	}
	if err := errors.Join(e.Create(t.Context(), b), e.Create(t.Context(), a)); err != nil {
		t.Fatal(err)
	}
	if got := e.Calls(); !slices.Equal(got, []string{"Create a", "Create a", "Create b", "Create a"}) {
		t.Errorf("calls: %q", got)
	}
}

func TestCrash(t *testing.T) {
	e := fake.New()
	n := nodeOf("a", 1)
	state := func() observe.State {
		all, err := e.List(t.Context(), "suite")
		if err != nil || len(all) != 1 {
			t.Fatalf("%d nodes, %v", len(all), err)
		}
		return all[0].State
	}
	e.Crash("Create", "", 1)
	if err := e.Create(t.Context(), n); !errors.Is(err, fake.ErrCrashed) || state() != observe.Broken {
		t.Errorf("a crash in Create: %v, %s", err, state())
	}
	e.Crash("Destroy", "a", 1)
	if err := e.Destroy(t.Context(), engine.RefOf(n)); !errors.Is(err, fake.ErrCrashed) || state() != observe.Broken {
		t.Errorf("a crash in Destroy: %v, %s", err, state())
	}
	if err := errors.Join(e.Destroy(t.Context(), engine.RefOf(n)), e.Create(t.Context(), n)); err != nil ||
		state() != observe.Stopped {
		t.Error(err)
	}
	e.Crash("Start", "a", 1)
	if err := e.Start(t.Context(), engine.RefOf(n)); !errors.Is(err, fake.ErrCrashed) || state() != observe.Stopped {
		t.Errorf("a crash in Start: %v, %s", err, state())
	}
}

func TestKill(t *testing.T) {
	e := fake.New()
	e.KillAt(2)
	if err := e.Create(t.Context(), nodeOf("a", 1)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b", "c"} {
		if err := e.Create(t.Context(), nodeOf(name, 2)); !errors.Is(err, fake.ErrKilled) {
			t.Errorf("node %s: %v", name, err)
		}
	}
	e.Revive()
	if err := e.Create(t.Context(), nodeOf("c", 3)); err != nil {
		t.Error(err)
	}
	all, _ := e.List(t.Context(), "")
	if len(all) != 3 || all[0].State != observe.Stopped || all[1].State != observe.Broken ||
		all[2].State != observe.Stopped {
		t.Errorf("there is %+v", all)
	}
}

func TestDelay(t *testing.T) {
	e := fake.New()
	e.Delay("Create", "a", time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := e.Create(ctx, nodeOf("a", 1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if all, _ := e.List(t.Context(), "suite"); len(all) != 1 || all[0].State != observe.Broken {
		t.Errorf("there is %+v", all)
	}
}

func TestCommandsAreKept(t *testing.T) {
	e := fake.New()
	n := nodeOf("a", 1)
	ref := engine.RefOf(n)
	e.Command = func(_ context.Context, _ engine.Ref, c host.Command) error {
		if c.Args[0] == "systemctl" {
			return errors.New("failed")
		}
		return nil
	}
	if err := errors.Join(e.Create(t.Context(), n), e.Start(t.Context(), ref)); err != nil {
		t.Fatal(err)
	}
	if err := e.Runner(ref).Run(t.Context(), host.Command{Args: []string{"apt-get", "update"}}); err != nil {
		t.Error(err)
	}
	var failed *host.RunError
	if err := e.Runner(ref).Run(t.Context(), host.Command{Args: []string{"systemctl"}}); !errors.As(err, &failed) ||
		failed.Status != 1 {
		t.Errorf("got %v", err)
	}
	if got := e.Commands(ref); len(got) != 2 || got[0].Args[0] != "apt-get" {
		t.Errorf("commands: %v", got)
	}
}
