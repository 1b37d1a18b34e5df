package remote_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/host/waits"
	"orrery/internal/plan"
)

// A busy host waits for a lock in every call.
type busy struct{ apply.RunHost }

func (b busy) Lock(ctx context.Context, by host.Holder) (func(), error) {
	waits.Report(ctx, "waits for a lock: eve\x1b[2J "+strings.Repeat("!", 10_000))
	return b.RunHost.Lock(ctx, by)
}

func (busy) Do(ctx context.Context, _ *plan.Step, say func(string)) error {
	say("begins")
	waits.Report(ctx, "waits for the networks")
	say("goes on")
	return nil
}

type busyMachine struct{ machine }

func (m *busyMachine) Host(_, key string, _ apply.Secrets) apply.Host {
	h := m.of(key).Worker.Host
	h.Runs = busy{h.Runs}
	return h
}

// TestWaits: what a host waits for is reported on the control host, sanitized and shortened, and
// not mistaken for progress.
func TestWaits(t *testing.T) {
	p := newPair(t)
	far := p.to(&busyMachine{machine{dir: p.machine.dir, hosts: p.machine.hosts}}, "1").Host("s", p.keyring())
	var told []string
	ctx := waits.WithReporter(t.Context(), func(text string) { told = append(told, text) })
	letGo, err := far.Runs.Lock(ctx, host.Holder{Who: "ada"})
	must(t, err)
	letGo()
	if len(told) != 1 || !strings.HasPrefix(told[0], `host sv2 waits for a lock: eve\x1b[2J !!!`) || len(told[0]) > 600 {
		t.Errorf("while the site's lock is taken, it is told %.700q", told)
	}
	var said []string
	must(t, far.Runs.Do(ctx, &plan.Step{Kind: plan.RestoreHost, Host: "s"},
		func(text string) { said = append(said, text) }))
	if !slices.Equal(said, []string{"begins", "goes on"}) || len(told) != 2 ||
		told[1] != "host sv2 waits for the networks" {
		t.Errorf("in a step it says %q and is told %q", said, told)
	}
}
