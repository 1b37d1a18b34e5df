package apply

import (
	"context"
	"io"

	"orrery/internal/backup"
	"orrery/internal/observe"
)

// A BackupHost sends what is in backups, and receives it, along a stream (package backup/ferry).
type BackupHost interface {
	// Send sends what the host has of the site, at the pace of all hosts.
	Send(ctx context.Context, way io.ReadWriter) error
	// SendMissing reads what backups have lost of what the host sent, and sends that.
	SendMissing(ctx context.Context, way io.ReadWriter) error
	// Receive stores what comes for the host where nothing sees it.
	Receive(ctx context.Context, way io.ReadWriter) error
	// Restoring returns how far the host's part of a restore has come, or nil if it has none.
	Restoring(ctx context.Context) (*observe.Restoring, error)
	// AdvanceRestore does a step of it (backup.ToGo and so on). It tells which nodes the backup has
	// and the site does not.
	AdvanceRestore(ctx context.Context, id, to string) (told []string, err error)
}

// InterruptedRestore returns the part of a restore that was interrupted and has come farthest on
// some host; nil: there is none.
func InterruptedRestore(ctx context.Context, f *Fleet) (*observe.Restoring, error) {
	parts := make([]*observe.Restoring, len(f.All))
	err := f.Each(func(i int, h *Steered) (err error) {
		parts[i], err = h.Backups.Restoring(ctx)
		return err
	})
	var one *observe.Restoring
	for _, p := range parts {
		if p == nil || p.Placed && len(p.Nodes) == 0 { // it came to its end, and the next run removes what is left
			continue
		}
		if one == nil || p.Going && !one.Going {
			one = p
		}
	}
	return one, err
}

// DropRestores removes what a restore has left on hosts that was interrupted, of a site of which
// nothing else is there any more.
func DropRestores(ctx context.Context, f *Fleet) error {
	return f.Each(func(_ int, h *Steered) error {
		_, err := h.Backups.AdvanceRestore(ctx, "", backup.ToGiveUp)
		return err
	})
}
