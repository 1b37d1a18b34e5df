package backups

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/hosts"
	"orrery/internal/problem"
	"orrery/internal/site/twin"
)

// A twin that is restored is one of the site in the site directory, on its hosts, and each of them keeps its record. That is written before anything of the twin is there.

// asTwin makes of the site in the site directory the twin that is restored.
func (r *restoring) asTwin(ctx context.Context) error {
	r.original = r.site
	record, err := r.onRecord(ctx)
	switch {
	case err == nil:
		r.known = true
	case problem.Is(err, problem.Mistake), errors.Is(err, fs.ErrNotExist): // there is none
		record = twin.Record{
			Site: r.original.Name, Dir: r.SiteDir, Options: twin.Options{Name: r.twin, Owner: control.Who()}, Volumes: r.begins(), Filled: true, Created: time.Now().UTC().Truncate(time.Second),
		}
		if hosts.Far(r.original) {
			record.Hosts = hosts.Names(r.original)
		}
		if r.manifest.Partial {
			record.Options.Only = nodesIn(r.manifest)
		}
	default:
		return err
	}
	r.record, r.Session.Twin = record, r.twin
	if hosts.Far(r.original) {
		r.Know(record)
	}
	r.site, err = twin.Of(r.original, record.Options)
	return err
}

// begins says what the volumes of the twin begin with.
func (r *restoring) begins() string { return "backup " + r.id }

// onRecord gives what is on record of a twin of that name.
func (r *restoring) onRecord(ctx context.Context) (twin.Record, error) {
	if !hosts.Far(r.original) {
		return r.ReadTwin(r.key())
	}
	t, err := r.Call(r.original).OneTwin(ctx, r.twin)
	if err != nil {
		return twin.Record{}, err
	}
	return t.Record, nil
}

// note lets hosts have the record of the twin. Undo removes it, with all that has been laid down for it, where there was none.
func (r *restoring) note(ctx context.Context) (undo func() error, err error) {
	nothing := func() error { return nil }
	if r.twin == "" {
		return nothing, nil
	}
	if hosts.Far(r.original) {
		err = r.Call(r.site).RecordTwin(ctx, r.record)
	} else {
		err = r.WriteTwin(r.record)
	}
	if r.known || err != nil {
		return nothing, err
	}
	return func() error {
		return r.fleet.Each(func(_ int, h *apply.Steered) error { return h.ForgetTwin(context.WithoutCancel(ctx)) })
	}, nil
}
