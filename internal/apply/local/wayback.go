package local

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/host/later"
)

// KeepWayBack keeps how the host goes back from a trial, and lets a process watch over that.
func (w *Worker) KeepWayBack(ctx context.Context, back apply.WayBack) error {
	if err := host.WriteJSON(apply.WayBackPath(w.Dirs, w.Key), 0o600, back); err != nil {
		return err
	}
	return w.Waiter.Later(ctx, later.Call{Name: apply.WatchName(w.Key), Args: []string{"trial", "--key", w.Key}})
}
