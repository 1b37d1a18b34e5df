package vm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
)

var db = engine.Ref{Site: "karoo", ID: 101, Name: "db"}

// nodes returns Nodes in a test directory, of which all run or none.
func nodes(t *testing.T, run bool) *nodedir.Nodes {
	t.Helper()
	n := &nodedir.Nodes{Dirs: host.Dirs{State: t.TempDir(), Run: t.TempDir()}, Engine: "kvm",
		Running: func(engine.Ref) bool { return run }}
	for _, dir := range []string{n.Dir(db).Path(), Of(n, db).Run} {
		must(t, os.MkdirAll(dir, 0o700))
	}
	return n
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestAwait: the error tells why a guest has not come up: it was switched off, it took too long, or
// the caller gave up.
func TestAwait(t *testing.T) {
	on := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	off := func(context.Context) error { return nil }
	given, giveUp := context.WithCancelCause(t.Context())
	giveUp(errors.New("enough"))
	for name, c := range map[string]struct {
		ctx   context.Context
		bound time.Duration
		off   func(context.Context) error
		want  string
	}{
		"off":      {t.Context(), time.Hour, off, "it was switched off before its agent answered"},
		"too long": {t.Context(), time.Millisecond, on, "its agent has not answered within 1ms"},
		"given up": {given, time.Hour, on, "enough"},
	} {
		n := nodes(t, true)
		err := (&Agents{Nodes: n}).Await(c.ctx, Of(n, db), Timeouts{c.bound, time.Hour}, c.off)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNobody: nothing is requested of a machine that does not run.
func TestNobody(t *testing.T) {
	a := &Agents{Nodes: nodes(t, false)}
	want := engine.NotRunning(db).Error()
	_, err := a.Connect(t.Context(), db)
	ran := a.Runner(db).Run(t.Context(), host.Command{Args: []string{"true"}})
	asked := a.PowerOff(t.Context(), db, func(context.Context) error { return nil })
	for _, err := range []error{err, ran, asked} {
		if err == nil || err.Error() != want {
			t.Errorf("%v", err)
		}
	}
	a.Disconnect(db)
}

// TestBoot: a machine is marked while it is being started. If the start fails, it stays marked
// until it is ended.
func TestBoot(t *testing.T) {
	m := Of(nodes(t, false), db)
	failed := errors.New("it has failed")
	for _, want := range []error{nil, failed} {
		ended := false
		marked := func() {
			_, missing := os.Lstat(m.StartingFile())
			must(t, missing)
		}
		err := m.Boot(func() error { marked(); return want }, func() error { marked(); ended = true; return nil })
		if _, gone := os.Lstat(m.StartingFile()); !errors.Is(err, want) || gone == nil || ended != (want != nil) {
			t.Errorf("%v %v; ended: %v", err, gone, ended)
		}
	}
}

// TestShutDown: a machine that does not run is not asked to shut down, but what is left of it is
// ended. Then the mark is removed.
func TestShutDown(t *testing.T) {
	m := Of(nodes(t, false), db)
	must(t, os.WriteFile(m.StoppingFile(), nil, 0o600))
	off := func() error { t.Error("it was asked to shut down"); return nil }
	failed := errors.New("it has failed")
	for _, want := range []error{failed, nil} {
		if err := m.ShutDown(t.Context(), off, func() error { return want }); !errors.Is(err, want) {
			t.Error(err)
		}
		if _, gone := os.Lstat(m.StoppingFile()); (gone == nil) != (want != nil) {
			t.Errorf("after %v the mark is there: %v", want, gone)
		}
	}
}

// TestRemoveRun: empty directories above a machine's are removed with it, and others stay.
func TestRemoveRun(t *testing.T) {
	n := nodes(t, false)
	one, other := Of(n, db), Of(n, engine.Ref{Site: "karoo", ID: 102})
	for _, m := range []Machine{one, other} {
		must(t, os.MkdirAll(filepath.Join(m.Run, "next"), 0o700))
	}
	must(t, one.RemoveRun())
	if _, err := os.Stat(one.Run); err == nil {
		t.Error("it is there")
	}
	if _, err := os.Stat(other.Run); err != nil {
		t.Error(err)
	}
	must(t, other.RemoveRun())
	must(t, other.RemoveRun())
	if entries, err := os.ReadDir(n.Dirs.Run); err != nil || len(entries) > 0 {
		t.Errorf("%v %v", entries, err)
	}
}

// TestSweep: a machine that cannot be swept does not keep others from being swept.
func TestSweep(t *testing.T) {
	n := nodes(t, false)
	other := engine.Ref{Site: "karoo", ID: 102, Name: "web"}
	must(t, os.MkdirAll(n.Dir(other).Path(), 0o700))
	for _, ref := range []engine.Ref{db, other} {
		r := &nodedir.Record{}
		r.Site, r.ID, r.Name, r.Engine = ref.Site, ref.ID, ref.Name, n.Engine
		must(t, n.Dir(ref).Write(r))
	}
	swept := make(chan engine.Ref, 2)
	err := Sweep(t.Context(), n, "karoo", problem.New(problem.Failed, "left"),
		func(_ context.Context, ref engine.Ref) error {
			swept <- ref
			if ref == db {
				return errors.New("it cannot be swept")
			}
			return nil
		})
	if one, two := <-swept, <-swept; one == two || err == nil || err.Error() != "it cannot be swept" {
		t.Errorf("%v, %v: %v", one, two, err)
	}
}

// TestSaid: an error contains what the programs printed and what the host lacks.
func TestSaid(t *testing.T) {
	const printed = "Kernel panic"
	err := Of(nodes(t, false), db).StartProblem(errors.New("QEMU has ended"), printed)
	for _, part := range []string{"node db could not start", "QEMU has ended\n", "Kernel panic", "orrery doctor"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
	if lack := AsLack(problem.New(problem.Unable, "no QEMU").Try("install it")); lack != (observe.Missing{What: "no QEMU",
		Cure: "install it"}) {
		t.Errorf("%+v", lack)
	}
	if lack := AsLack(errors.New("no QEMU")); lack != (observe.Missing{What: "no QEMU"}) {
		t.Errorf("%+v", lack)
	}
}

// counted is a connection that counts how often it was made, and ends on demand.
type counted struct {
	number        int
	ended, closed *bool
}

func (c counted) Ping(context.Context) error {
	if *c.ended {
		return errors.New("it has exited")
	}
	return nil
}

func (c counted) Close() error { *c.closed = true; return nil }

// TestConnections: a guest has one connection, and a new one when that has ended. A failed
// connection is tried again by the next call.
func TestConnections(t *testing.T) {
	var all Connections[counted]
	var made int
	var fails error
	connect := func(context.Context) (counted, error) {
		if fails != nil {
			return counted{}, fails
		}
		made++
		return counted{made, new(bool), new(bool)}, nil
	}
	want := func(number int) counted {
		t.Helper()
		c, err := all.Get(t.Context(), db, connect)
		if err != nil || c.number != number {
			t.Fatalf("connection %d, %v; want %d", c.number, err, number)
		}
		return c
	}
	fails = errors.New("nobody answers")
	if _, err := all.Get(t.Context(), db, connect); !errors.Is(err, fails) {
		t.Error(err)
	}
	fails = nil
	first := want(1)
	want(1)
	*first.ended = true
	second := want(2)
	all.Disconnect(db)
	all.Disconnect(db)
	third := want(3)
	if !*first.closed || !*second.closed || *third.closed {
		t.Errorf("closed: %t %t %t", *first.closed, *second.closed, *third.closed)
	}
}
