package kvm

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/engine/kvm/recorder"
	"orrery/internal/host"
	"orrery/internal/host/process"
)

// A handover is what is on record while another machine takes the place of a node's: so that one of
// the two goes on, and no more than one, whenever we are killed.
type handover struct {
	Leaving process.Crew `json:"leaving"`         // the processes of the one that was there before
	Taken   bool         `json:"taken,omitempty"` // the other goes on
	Headers headers      `json:"headers,omitempty"`
}

// moving is the file with it.
func (m machine) moving() string { return m.File("moving") }

// nextRun is the directory of what the machine has that takes over, until it has.
func (m machine) nextRun() string { return filepath.Join(m.Run, "next") }

// A takeover is a machine that takes the place of another of its node.
type takeover struct {
	handover
	m      machine // the other
	guests *guests
}

// takeOver puts on record that a machine is to take the place of the one that runs.
func takeOver(g *guests, m machine) (*takeover, error) {
	of, err := headersOf(m.qemu())
	if err != nil {
		return nil, err
	}
	t := &takeover{handover{Leaving: process.CrewOf(recorder.Others(m.Group())), Headers: of}, m, g}
	return t, t.note()
}

// next is the machine that takes over: what it has while it runs is below what the other has.
func (t *takeover) next() machine {
	n := t.m
	n.Run, n.former = t.m.nextRun(), t.Leaving
	return n
}

// note writes what is on record.
func (t *takeover) note() error { return host.WriteJSON(t.m.moving(), 0o600, t.handover) }

// stay ends the machine that was to take over, and lets the other have its links as they were.
func (t *takeover) stay(ctx context.Context) error {
	records := recorder.Of(t.m.Group())
	err := t.m.Group().KillThose(ctx, func(pid int) bool { return !t.Leaving.Has(pid) && pid != records })
	if err != nil {
		return err
	}
	if err := t.Headers.restore(t.m.qemu()); err != nil {
		return err
	}
	return t.over(ctx)
}

// take puts the machine that has taken over in the place of the one before, and ends that one.
func (t *takeover) take(ctx context.Context) error {
	m := t.m
	t.Taken = true
	if err := t.note(); err != nil {
		return err
	}
	t.guests.leave(m.Ref)
	sockets, err := os.ReadDir(m.nextRun())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, s := range sockets {
		if err := os.Rename(filepath.Join(m.nextRun(), s.Name()), filepath.Join(m.Run, s.Name())); err != nil {
			return err
		}
	}
	if err := m.Group().KillThose(ctx, t.Leaving.Has); err != nil {
		return err
	}
	return t.over(ctx)
}

// over forgets that there were two, and limits the node to one again.
func (t *takeover) over(ctx context.Context) error {
	m := t.m
	r, err := t.guests.nodes.Record(m.Ref)
	if err != nil {
		return err
	}
	if err := limit(m, &r.Node, 1); err != nil {
		return err
	}
	if err := os.RemoveAll(m.nextRun()); err != nil {
		return err
	}
	if err := os.Remove(m.moving()); err != nil {
		return err
	}
	t.guests.stir(ctx, m)
	return nil
}

// resolve completes what a run that was killed has begun, or takes it back: whichever of two
// machines has the state goes on.
func resolve(ctx context.Context, g *guests, m machine) error {
	h, err := host.ReadJSON[handover](m.moving())
	if err != nil {
		return err
	}
	t := &takeover{h, m, g}
	if h.Taken || t.sent(ctx) {
		return t.take(ctx)
	}
	return t.stay(ctx)
}

// answering is how long the monitor of a machine may take that a killed run has left.
const answering = 10 * time.Second

// sent reports whether the machine has sent its state away, and will not go on. If it has not, it
// is told to keep it. Of one that has ended, the other knows.
func (t *takeover) sent(ctx context.Context) bool {
	if old, err := asked(ctx, t.m.Run); err == nil {
		defer old.Close() //nolint:errcheck // it has answered
		sent, err := old.Recall(ctx)
		return err == nil && sent != nil
	}
	heir, err := asked(ctx, t.m.nextRun())
	if err != nil {
		return false
	}
	defer heir.Close() //nolint:errcheck // it has answered
	status, err := heir.Status(ctx)
	return err == nil && status == qmp.Running
}

// asked connects to the monitor of a machine that may have ended.
func asked(ctx context.Context, run string) (*qmp.Client, error) {
	path := filepath.Join(run, monitor)
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil, err // nobody listens
	}
	conn.Close() //nolint:errcheck // nothing was asked
	ctx, cancel := context.WithTimeout(ctx, answering)
	defer cancel()
	return qmp.Dial(ctx, path)
}
