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
	"orrery/internal/host"
	"orrery/internal/host/process"
)

// A handover is recorded while another machine takes the place of a node's. By the record, exactly
// one of the two continues, whenever this program is killed.
type handover struct {
	Leaving process.Set `json:"leaving"`         // the processes of the old machine
	Taken   bool        `json:"taken,omitempty"` // the new machine continues
	Headers headers     `json:"headers,omitempty"`
}

// handoverFile returns the path of the record.
func (m machine) handoverFile() string { return m.File("moving") }

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
	t := &takeover{handover{Leaving: process.NewSet(otherRecorders(m.Group())), Headers: of}, m, g}
	return t, t.save()
}

// next returns the new machine, whose run directory is below that of the old one.
func (t *takeover) next() machine {
	n := t.m
	n.Run, n.former = t.m.nextRun(), t.Leaving
	return n
}

// save writes the record.
func (t *takeover) save() error { return host.WriteJSON(t.m.handoverFile(), 0o600, t.handover) }

// rollBack kills the new machine and restores the header sizes of the old machine's links.
func (t *takeover) rollBack(ctx context.Context) error {
	records := findRecorder(t.m.Group())
	err := t.m.Group().KillMatching(ctx, func(pid int) bool { return !t.Leaving.Has(pid) && pid != records })
	if err != nil {
		return err
	}
	if err := t.Headers.restore(t.m.qemu()); err != nil {
		return err
	}
	return t.finish(ctx)
}

// commit puts the new machine in the place of the old one, and kills the old one.
func (t *takeover) commit(ctx context.Context) error {
	m := t.m
	t.Taken = true
	if err := t.save(); err != nil {
		return err
	}
	t.guests.disconnect(m.Ref)
	sockets, err := os.ReadDir(m.nextRun())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, s := range sockets {
		if err := os.Rename(filepath.Join(m.nextRun(), s.Name()), filepath.Join(m.Run, s.Name())); err != nil {
			return err
		}
	}
	if err := m.Group().KillMatching(ctx, t.Leaving.Has); err != nil {
		return err
	}
	return t.finish(ctx)
}

// finish removes the record and limits the node to the resources of one machine again.
func (t *takeover) finish(ctx context.Context) error {
	m := t.m
	r, err := t.guests.nodes.Record(m.Ref)
	if err != nil {
		return err
	}
	if err := applyLimits(m, &r.Node, 1); err != nil {
		return err
	}
	if err := os.RemoveAll(m.nextRun()); err != nil {
		return err
	}
	if err := os.Remove(m.handoverFile()); err != nil {
		return err
	}
	t.guests.ensureKick(ctx, m)
	return nil
}

// resolve completes or undoes a takeover that was interrupted by a kill. The machine that has the
// state continues.
func resolve(ctx context.Context, g *guests, m machine) error {
	h, err := host.ReadJSON[handover](m.handoverFile())
	if err != nil {
		return err
	}
	t := &takeover{h, m, g}
	if h.Taken || t.stateSent(ctx) {
		return t.commit(ctx)
	}
	return t.rollBack(ctx)
}

// monitorTimeout limits how long a machine's monitor may take to answer.
const monitorTimeout = 10 * time.Second

// stateSent reports whether the old machine has sent its state and will not continue. If it has not sent
// it, sent cancels the migration. If the old machine has ended, sent asks the new one.
func (t *takeover) stateSent(ctx context.Context) bool {
	if old, err := dialMonitor(ctx, t.m.Run); err == nil {
		defer old.Close() //nolint:errcheck // it has answered
		sent, err := old.CancelMigration(ctx)
		return err == nil && sent != nil
	}
	heir, err := dialMonitor(ctx, t.m.nextRun())
	if err != nil {
		return false
	}
	defer heir.Close() //nolint:errcheck // it has answered
	status, err := heir.Status(ctx)
	return err == nil && status == qmp.Running
}

// dialMonitor connects to the monitor of a machine that may have ended.
func dialMonitor(ctx context.Context, run string) (*qmp.Client, error) {
	path := filepath.Join(run, monitorSocket)
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil, err // nothing listens
	}
	conn.Close() //nolint:errcheck // nothing was asked
	ctx, cancel := context.WithTimeout(ctx, monitorTimeout)
	defer cancel()
	return qmp.Dial(ctx, path)
}
