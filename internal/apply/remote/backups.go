package remote

import (
	"context"
	"io"

	"orrery/internal/observe"
)

// Send makes the remote host send its part of the site.
func (f backupHost) Send(ctx context.Context, way io.ReadWriter) error {
	return giveBackupMethod.along(ctx, f.far, none{}, way)
}

var giveBackupMethod = method[none, none]{
	name: "give backup", traits: traits{long: true, abandoned: true, displayed: true},
	answer: func(ctx context.Context, c *received, _ none) (none, error) {
		return none{}, c.host().Backups.Send(ctx, c.stream())
	},
}

// SendMissing makes the remote host find and send what backups have lost of the data that it sent.
func (f backupHost) SendMissing(ctx context.Context, way io.ReadWriter) error {
	return findBackupMethod.along(ctx, f.far, none{}, way)
}

var findBackupMethod = method[none, none]{
	name: "find of backup", traits: traits{long: true, abandoned: true, displayed: true},
	answer: func(ctx context.Context, c *received, _ none) (none, error) {
		return none{}, c.host().Backups.SendMissing(ctx, c.stream())
	},
}

// Receive makes the remote host store its part of a backup.
func (f backupHost) Receive(ctx context.Context, way io.ReadWriter) error {
	return layBackupMethod.along(ctx, f.far, none{}, way)
}

var layBackupMethod = method[none, none]{
	name: "lay down backup", traits: traits{long: true, displayed: true},
	answer: func(ctx context.Context, c *received, _ none) (none, error) {
		return none{}, c.host().Backups.Receive(ctx, c.stream())
	},
}

// Restoring returns how far the remote host's part of a restore has come.
func (f backupHost) Restoring(ctx context.Context) (s *observe.Restoring, err error) {
	s, err = restorePartMethod.call(ctx, f.far, none{})
	if s != nil {
		shownPart(s)
	}
	return s, err
}

var restorePartMethod = method[none, *observe.Restoring]{
	name: "part of restore", traits: traits{maxBytes: listMaxBytes, abandoned: true},
	answer: func(ctx context.Context, c *received, _ none) (*observe.Restoring, error) {
		return c.host().Backups.Restoring(ctx)
	},
}

// shownPart sanitizes the remote host's report on a restore.
func shownPart(s *observe.Restoring) {
	s.ID, s.From = shown(s.ID), shown(s.From)
	s.Nodes, s.Without = shownAll(s.Nodes), shownAll(s.Without)
}

// AdvanceRestore takes the remote host's part of a restore one step further.
func (f backupHost) AdvanceRestore(ctx context.Context, id, to string) (told []string, err error) {
	told, err = advanceRestoreMethod.call(ctx, f.far, restoreStep{id, to})
	return shownAll(told), err
}

// A restoreStep says which restore a host must continue, and to which step.
type restoreStep struct {
	ID string `json:"id"`
	To string `json:"to"`
}

var advanceRestoreMethod = method[restoreStep, []string]{
	name: "advance restore", traits: traits{maxBytes: listMaxBytes, long: true},
	answer: func(ctx context.Context, c *received, step restoreStep) ([]string, error) {
		return c.host().Backups.AdvanceRestore(ctx, step.ID, step.To)
	},
}

// shownAll sanitizes the entries of a list and limits their number.
func shownAll(all []string) []string {
	all = all[:min(len(all), maxPerSnapshot)]
	for i := range all {
		all[i] = shown(all[i])
	}
	return all
}
