package unattended

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"orrery/internal/apply"
	"orrery/internal/apply/local/memory"
	"orrery/internal/control/here"
	"orrery/internal/host"
	"orrery/internal/host/schedule"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site/inventory"
	"orrery/test/need"
)

// A machine is this machine, in memory.
type machine struct {
	here.Machine
	host    *memory.Host
	waiting []schedule.Pending
}

func newMachine(t *testing.T) (m *machine, on *Host) {
	t.Helper()
	dir := need.MemoryDir(t) // like /run; otherwise root mounts a tmpfs there
	m = &machine{host: memory.New(dir, "toykat", "sv1", 4, 1<<30)}
	m.host.Worker.Waiter = m
	return m, &Host{
		Machine: m, Dirs: host.Dirs{State: dir + "/state", Run: dir + "/run"}, Key: "toykat",
		Say: func(err error) { t.Error(err) }, Tell: t.Logf,
	}
}

func (m *machine) Allowed() error                                { return nil }
func (m *machine) Host(string, string, apply.Secrets) apply.Host { return m.host.Worker.Host }
func (m *machine) Waiting() ([]schedule.Pending, error)          { return m.waiting, nil }

func (m *machine) Later(_ context.Context, job schedule.Job) error {
	m.waiting = append(m.waiting, schedule.Pending{Name: job.Name, Args: job.Args})
	return nil
}

func (m *machine) Cancel(name string) error {
	m.waiting = slices.DeleteFunc(m.waiting, func(p schedule.Pending) bool { return p.Name == name })
	return nil
}

// lost is a trigger that exists only in this test: another host does not answer any more. It
// carries out the steps of its plan.
type lost struct{ dated }

func (lost) Name() string { return "lost-host" }

func (lost) Run(ctx context.Context, h *Host, _ string) error {
	lock, err := LockWatch(ctx, h.Dirs, h.Key, "lost-host", h.holder())
	if err != nil {
		return err
	}
	defer lock.Release()
	letGo, err := h.lock(ctx)
	if err != nil {
		return err
	}
	defer letGo()
	steps, err := apply.DecodeSteps(h.plan.Steps)
	if err != nil {
		return err
	}
	return h.runSteps(ctx, steps)
}

// TestNewTrigger adds a trigger to the list. No other code knows this trigger. A host with a plan
// for it still gets a process that watches and carries out the steps. The process is started again
// if it was killed, until the plan is removed.
func TestNewTrigger(t *testing.T) {
	before := Triggers
	Triggers = append(slices.Clone(before), lost{})
	t.Cleanup(func() { Triggers = before })
	m, h := newMachine(t)
	step, err := plan.Encode(&plan.Step{Kind: plan.WriteNames, Host: "sv1", Subject: "sv1", Names: "10.0.0.1 web",
		Payload: plan.Payload{Tell: &inventory.PeerInfo{}}})
	must(t, err)
	save := func(p apply.UnattendedPlan) {
		t.Helper()
		p.Trigger, p.Host = "lost-host", "sv1"
		_, err := m.host.Worker.State.SavePlan(t.Context(), p)
		must(t, err)
	}
	lapses := func() []Lapse {
		return Lapses(t.Context(), m, h.Dirs, StartGrace, func(key string, err error) { t.Errorf("%s: %v", key, err) })
	}
	save(apply.UnattendedPlan{Watch: true, Steps: []json.RawMessage{step}})
	if len(m.waiting) != 1 || m.waiting[0].Name != "lost-host-toykat" ||
		!slices.Equal(m.waiting[0].Args, []string{"host-run", "toykat", "lost-host"}) {
		t.Errorf("started is %v", m.waiting)
	}
	lock, err := LockWatch(t.Context(), h.Dirs, h.Key, "lost-host", host.Holder{})
	must(t, err)
	if all := lapses(); len(all) > 0 {
		t.Errorf("lapses of what watches: %v", all)
	}
	lock.Release()
	m.waiting = nil // the process was killed
	all := lapses()
	if len(all) != 1 || all[0].Overdue() {
		t.Fatalf("lapses of what was killed: %v", all)
	}
	must(t, all[0].Resume(t.Context(), m))
	if len(m.waiting) != 1 {
		t.Error("nobody watches again")
	}
	must(t, h.Run(t.Context(), "lost-host", ""))
	if names := m.host.Observe().Names; names != "10.0.0.1 web" {
		t.Errorf("names are %q", names)
	}
	save(apply.UnattendedPlan{})
	if len(m.waiting)+len(lapses()) > 0 {
		t.Errorf("a plan that was taken back: %v, %v", m.waiting, lapses())
	}
	if err := h.Run(t.Context(), "lost-host", ""); !problem.Is(err, problem.Failed) {
		t.Errorf("without a plan: %v", err)
	}
	Triggers = before
	if err := h.Run(t.Context(), "lost-host", ""); !problem.Is(err, problem.Usage) {
		t.Errorf("of another version: %v", err)
	}
}

// TestLapses: a plan with a time lapses when no process waits for it. It does not lapse just after
// its time, when the process may be at work.
func TestLapses(t *testing.T) {
	m, h := newMachine(t)
	for what, c := range map[string]struct {
		at      time.Duration
		lapses  int
		overdue bool
	}{"in an hour": {time.Hour, 1, false}, "just now": {-time.Second, 0, false}, "an hour ago": {-time.Hour, 1, true}} {
		_, err := m.host.Worker.State.SavePlan(t.Context(),
			apply.UnattendedPlan{Trigger: apply.TriggerExpiry, At: time.Now().Add(c.at)})
		must(t, err)
		find := func() []Lapse {
			return Lapses(t.Context(), m, h.Dirs, StartGrace, func(_ string, err error) { t.Error(err) })
		}
		if all := find(); len(all) > 0 {
			t.Errorf("%s: something waits, and yet there are %v", what, all)
		}
		m.waiting = nil
		if all := find(); len(all) != c.lapses || c.lapses > 0 && all[0].Overdue() != c.overdue {
			t.Errorf("%s: lapses are %v", what, all)
		}
	}
	broken := func(key string, err error) { t.Logf("%s: %v", key, err) }
	must(t, host.WriteFile(host.File{Path: apply.UnattendedPath(h.Dirs, "toykat", apply.TriggerExpiry),
		Content: []byte("{"),
		Mode:    0o600}))
	if all := Lapses(t.Context(), m, h.Dirs, 0, broken); len(all) > 0 {
		t.Errorf("what cannot be read is %v", all)
	}
	if err := h.Run(t.Context(), apply.TriggerExpiry, ""); !problem.Is(err, problem.Failed) || errors.Unwrap(err) == nil {
		t.Errorf("%v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
