package backups

import (
	"context"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/hosts"
	"orrery/internal/problem"
	"orrery/internal/site/twin"
)

// A restored twin is a twin of the site in the site directory, on the hosts of that site. Each host
// stores its record. The record is written before anything of the twin exists.

// asTwin makes the site in the site directory into the twin that is restored.
func (r *restoreRun) asTwin(ctx context.Context) error {
	r.original = r.site
	var record twin.Record
	existing, err := r.Session.Connector(r.original).Twins().Find(ctx, r.twin)
	switch {
	case err == nil:
		record, r.known = existing.Record, true
	case problem.Is(err, problem.Mistake): // there is no such twin
		record = twin.Record{
			Site: r.original.Name, Dir: r.files.Path, Options: twin.Options{Name: r.twin, Owner: control.UserName()},
			Volumes: r.initialContent(), Filled: true, Created: time.Now().UTC().Truncate(time.Second),
		}
		record.Hosts = hosts.Names(r.original)
		if r.manifest.Partial {
			record.Options.Only = nodeNames(r.manifest)
		}
	default:
		return err
	}
	r.record, r.Session.Twin = record, r.twin
	r.Session.Known.Add(record)
	r.site, err = twin.New(r.original, record.Options)
	return err
}

// initialContent returns the record's description of the initial content of the twin's volumes.
func (r *restoreRun) initialContent() string { return "backup " + r.id }

// recordTwin stores the record of the twin on all hosts. On hosts that had no record, undo removes it,
// with everything that has been staged for the twin.
func (r *restoreRun) recordTwin(ctx context.Context) (undo func() error, err error) {
	nothing := func() error { return nil }
	if r.twin == "" {
		return nothing, nil
	}
	err = r.Session.Connector(r.site).RecordTwin(ctx, r.record)
	if r.known || err != nil {
		return nothing, err
	}
	return func() error {
		return r.fleet.ForEach(func(_ int, h *apply.HostClient) error { return h.Twins.Forget(context.WithoutCancel(ctx)) })
	}, nil
}
