package remote

import (
	"context"
	"io"

	"orrery/internal/observe"
	"orrery/internal/wire"
)

// GiveBackup lets the host give what it has.
func (f *far) GiveBackup(ctx context.Context, way io.ReadWriter) error {
	return f.along(ctx, toGiveBackup, f.q(), way)
}

// FindBackup lets the host look for what backups have lost of what it gave.
func (f *far) FindBackup(ctx context.Context, way io.ReadWriter) error {
	return f.along(ctx, toFindBackup, f.q(), way)
}

// LayBackup lets the host lay down what comes for it.
func (f *far) LayBackup(ctx context.Context, way io.ReadWriter) error {
	return f.along(ctx, toLayBackup, f.q(), way)
}

// RestorePart tells how far the part of a restore has come that the host has.
func (f *far) RestorePart(ctx context.Context) (s *observe.Restoring, err error) {
	err = f.ask(ctx, toSeePart, f.q(), nil, &s)
	if s != nil {
		shownPart(s)
	}
	return s, err
}

// shownPart makes what a host says of a restore fit to be shown.
func shownPart(s *observe.Restoring) {
	s.ID, s.From = shown(s.ID), shown(s.From)
	s.Nodes, s.Without = shownAll(s.Nodes), shownAll(s.Without)
}

// AdvanceRestore lets the host do a step of it.
func (f *far) AdvanceRestore(ctx context.Context, id, to string) (told []string, err error) {
	q := f.q()
	q.Names = []string{id, to}
	err = f.ask(ctx, toAdvance, q, nil, &told)
	return shownAll(told), err
}

// shownAll makes of a list what is fit to be shown.
func shownAll(all []string) []string {
	all = all[:min(len(all), mostInOne)]
	for i := range all {
		all[i] = shown(all[i])
	}
	return all
}

// ferry does what is about backups.
func (on *lent) ferry(ctx context.Context, about string, q *question, with *wire.Caller) (any, error) {
	switch about {
	case toGiveBackup:
		return nil, on.GiveBackup(ctx, wayOf(with))
	case toFindBackup:
		return nil, on.FindBackup(ctx, wayOf(with))
	case toLayBackup:
		return nil, on.LayBackup(ctx, wayOf(with))
	case toSeePart:
		return on.RestorePart(ctx)
	case toAdvance:
		if len(q.Names) == 2 {
			return on.AdvanceRestore(ctx, q.Names[0], q.Names[1])
		}
	}
	return nil, unknown(about)
}
