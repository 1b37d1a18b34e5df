package local

import (
	"context"
	"fmt"
	"io"
	"strings"

	"orrery/internal/apply"
	"orrery/internal/apply/filling"
	"orrery/internal/backup"
	"orrery/internal/host"
	"orrery/internal/host/twins"
	"orrery/internal/site/twin"
)

// List returns the records of all twins that have anything on the host.
func (h twinHost) List(context.Context) ([]twin.Record, error) { return twins.List(h.Dirs), nil }

// Save stores the record of a twin, and schedules its end on this host. This happens before
// anything of the twin exists.
func (h twinHost) Save(ctx context.Context, r twin.Record) error {
	if r.Key() != h.Key {
		return fmt.Errorf("the record is of twin %s, not of %s", r.Key(), h.Key)
	}
	if err := twins.Write(h.Dirs, r); err != nil || r.Expires.IsZero() {
		return err
	}
	_, err := stateHost{SiteState: h.SiteState}.SavePlan(ctx,
		apply.UnattendedPlan{Trigger: apply.TriggerExpiry, Host: h.Name, At: r.Expires})
	return err
}

// Fill fills the volumes of a twin from those of the site.
func (h twinHost) Fill(ctx context.Context, name string, of []apply.VolumeCopy) ([]string, error) {
	return filling.Original{Dirs: h.Dirs, Key: h.Key, Still: h.life.freezeWriters}.Fill(ctx, name, of)
}

// Receive stores a volume of the site, which is a twin.
func (h volumeHost) Receive(_ context.Context, of apply.Directory, way io.ReadWriter) error {
	return filling.Receive(h.Dirs, h.Key, of, way)
}

// Forget removes all that is kept of a twin that has ended. It first waits until no restore is
// storing files for it.
func (h twinHost) Forget(ctx context.Context) error {
	if !strings.Contains(h.Key, ".") {
		return fmt.Errorf("%s is not a twin", h.Key)
	}
	lock, err := backup.TakeLock(ctx, h.Dirs, h.Key, host.NewHolder("root", "orrery twin destroy"))
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := h.Waiter.Cancel(apply.JobName(h.Key, apply.TriggerExpiry)); err != nil {
		return err
	}
	return h.Dirs.RemoveSite(h.Key)
}
