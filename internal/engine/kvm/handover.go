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

// A handover is recorded while another machine takes the place of a node's. By the record, exactly
// one of the two continues, whenever this program is killed.
type handover struct {
	Leaving process.Crew `json:"leaving"`         // the processes of the old machine
	Taken   bool         `json:"taken,omitempty"` // the new machine continues
	Headers headers      `json:"headers,omitempty"`
}

// moving returns the path of the record.
func (m machine) moving() string { return m.File("moving") }

// nextRun returns the run directory of the new machine during the takeover.
func (m machine) nextRun() string { return filepath.Join(m.Run, "next") }

// A takeover replaces the machine of a node by another one.
type takeover struct {
	handover
	m      machine // the old machine, and in its place the new one
	guests *guests
}

// takeOver records that another machine will take the place of the running one.
func takeOver(g *guests, m machine) (*takeover, error) {
	of, err := headersOf(m.qemu())
	if err != nil {
		return nil, err
	}
	t := &takeover{handover{Leaving: process.CrewOf(recorder.Others(m.Group())), Headers: of}, m, g}
	return t, t.note()
}

// next returns the new machine, whose run directory is below that of the old one.
func (t *takeover) next() machine {
	n := t.m
	n.Run, n.former = t.m.nextRun(), t.Leaving
	return n
}

// note writes the record.
func (t *takeover) note() error { return host.WriteJSON(t.m.moving(), 0o600, t.handover) }

// stay kills the new machine and restores the header sizes of the old machine's links.
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

// take puts the new machine in the place of the old one, and kills the old one.
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

// over removes the record and limits the node to the resources of one machine again.
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

// resolve completes or undoes a takeover that was interrupted by a kill. The machine that has the
// state continues.
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

// answering limits how long a machine's monitor may take to answer.
const answering = 10 * time.Second

// sent reports whether the old machine has sent its state and will not continue. If it has not sent
// it, sent cancels the migration. If the old machine has ended, sent asks the new one.
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
		return nil, err // nothing listens
	}
	conn.Close() //nolint:errcheck // nothing was asked
	ctx, cancel := context.WithTimeout(ctx, answering)
	defer cancel()
	return qmp.Dial(ctx, path)
}
