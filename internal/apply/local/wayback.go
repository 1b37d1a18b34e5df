package local

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/host/schedule"
)

// KeepWayBack keeps how the host goes back from a trial, and lets a process watch over that.
func (h stateHost) KeepWayBack(ctx context.Context, back apply.WayBack) error {
	if err := host.WriteJSON(apply.WayBackPath(h.Dirs, h.Key), 0o600, back); err != nil {
		return err
	}
	return h.Waiter.Later(ctx, schedule.Job{Name: apply.WatchName(h.Key), Args: []string{"trial", "--key", h.Key}})
}
