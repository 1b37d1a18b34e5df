package apply

import (
	"context"
	"io"

	"orrery/internal/backup"
	"orrery/internal/observe"
)

// A BackupHost sends and receives the content of backups over a stream (package backup/ferry).
type BackupHost interface {
	// Send sends the host's part of the site, in step with the other hosts.
	Send(ctx context.Context, way io.ReadWriter) error
	// SendMissing reads what backups have lost of the data that the host sent, and sends that
	// again.
	SendMissing(ctx context.Context, way io.ReadWriter) error
	// Receive stores the host's part of a backup in a directory that nothing else reads yet.
	Receive(ctx context.Context, way io.ReadWriter) error
	// Restoring returns how far the host's part of a restore has come, or nil if no restore is
	// under way.
	Restoring(ctx context.Context) (*observe.RestoreProgress, error)
	// AdvanceRestore takes the restore to the step given by to (backup.StepStart and so on). At the last
	// step, it returns messages about what differs from the backup, such as nodes that the site no
	// longer declares.
	AdvanceRestore(ctx context.Context, id, to string) (told []string, err error)
}

// InterruptedRestore returns the part of an interrupted restore that has come farthest on any host,
// or nil if there is none.
func InterruptedRestore(ctx context.Context, f *Fleet) (*observe.RestoreProgress, error) {
	parts := make([]*observe.RestoreProgress, len(f.All))
	err := f.ForEach(func(i int, h *HostClient) (err error) {
		parts[i], err = h.Backups.Restoring(ctx)
		return err
	})
	var one *observe.RestoreProgress
	for _, p := range parts {
		// this restore was complete, and the next run removes what is left of it
		if p == nil || p.Placed && len(p.Nodes) == 0 {
			continue
		}
		if one == nil || p.Going && !one.Going {
			one = p
		}
	}
	return one, err
}

// DropRestores removes what an interrupted restore left on the hosts. Nothing else of the site may
// exist there any more.
func DropRestores(ctx context.Context, f *Fleet) error {
	return f.ForEach(func(_ int, h *HostClient) error {
		_, err := h.Backups.AdvanceRestore(ctx, "", backup.StepAbort)
		return err
	})
}
