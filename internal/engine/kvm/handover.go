package kvm

import (
	"context"
	"encoding/json"
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

// A handover is what is on record while another machine takes the place of a node's: so that one of the two goes on, and no more than one, whenever we are killed.
type handover struct {
	Leaving process.Crew `json:"leaving"`         // the processes of the one that was there before
	Taken   bool         `json:"taken,omitempty"` // the other goes on
	Headers headers      `json:"headers,omitempty"`
}

// handOver is what is on record when another machine is to take the place of the one that runs.
func (m machine) handOver() (handover, error) {
	of, err := headersOf(m.qemu())
	return handover{Leaving: process.CrewOf(recorder.Others(m.Group())), Headers: of}, err
}

// moving is the file with it.
func (m machine) moving() string { return m.File("moving") }

// nextRun is the directory of what the machine has that takes over, until it has.
func (m machine) nextRun() string { return filepath.Join(m.Run, "next") }

func (m machine) note(h handover) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return host.WriteFile(host.File{Path: m.moving(), Content: text, Mode: 0o600})
}

// stay ends the machine that was to take over, and lets the other have its links as they were.
func (e *Engine) stay(ctx context.Context, m machine, h handover) error {
	records := recorder.Of(m.Group())
	err := m.Group().KillThose(ctx, func(pid int) bool { return !h.Leaving.Has(pid) && pid != records })
	if err != nil {
		return err
	}
	if err := h.Headers.restore(m.qemu()); err != nil {
		return err
	}
	return e.over(ctx, m)
}

// take puts the machine that has taken over in the place of the one before, and ends that one.
func (e *Engine) take(ctx context.Context, m machine, h handover) error {
	h.Taken = true
	if err := m.note(h); err != nil {
		return err
	}
	e.leave(m.Ref)
	sockets, err := os.ReadDir(m.nextRun())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, s := range sockets {
		if err := os.Rename(filepath.Join(m.nextRun(), s.Name()), filepath.Join(m.Run, s.Name())); err != nil {
			return err
		}
	}
	if err := m.Group().KillThose(ctx, h.Leaving.Has); err != nil {
		return err
	}
	return e.over(ctx, m)
}

// over forgets that there were two, and limits the node to one again.
func (e *Engine) over(ctx context.Context, m machine) error {
	r, err := e.Record(m.Ref)
	if err != nil {
		return err
	}
	if err := m.limit(&r.Node, 1); err != nil {
		return err
	}
	if err := os.RemoveAll(m.nextRun()); err != nil {
		return err
	}
	if err := os.Remove(m.moving()); err != nil {
		return err
	}
	e.stir(ctx, m)
	return nil
}

// resolve completes what a run that was killed has begun, or takes it back: whichever of two machines has the state goes on.
func (e *Engine) resolve(ctx context.Context, m machine) error {
	h, err := host.ReadJSON[handover](m.moving())
	if err != nil {
		return err
	}
	if !h.Taken {
		h.Taken = m.sent(ctx)
	}
	if h.Taken {
		return e.take(ctx, m, h)
	}
	return e.stay(ctx, m, h)
}

// answering is how long the monitor of a machine may take that a killed run has left.
const answering = 10 * time.Second

// sent reports whether the machine has sent its state away, and will not go on. If it has not, it is told to keep it. Of one that has ended, the other knows.
func (m machine) sent(ctx context.Context) bool {
	if old, err := asked(ctx, m.Run); err == nil {
		defer old.Close() //nolint:errcheck // it has answered
		sent, err := old.Recall(ctx)
		return err == nil && sent != nil
	}
	heir, err := asked(ctx, m.nextRun())
	if err != nil {
		return false
	}
	defer heir.Close() //nolint:errcheck // it has answered
	is, err := heir.Status(ctx)
	return err == nil && is == qmp.Running
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
