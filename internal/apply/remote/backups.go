package remote

import (
	"context"
	"io"

	"orrery/internal/observe"
)

// Send makes the remote host send its part of the site.
func (f backupHost) Send(ctx context.Context, way io.ReadWriter) error {
	return sendBackupMethod.callStream(ctx, f.remoteHost, none{}, way)
}

var sendBackupMethod = method[none, none]{
	name: "give backup", callOptions: callOptions{long: true, abandoned: true, displayed: true},
	answer: func(ctx context.Context, c *serverCall, _ none) (none, error) {
		return none{}, c.host().Backups.Send(ctx, c.stream())
	},
}

// SendMissing makes the remote host find and send what backups have lost of the data that it sent.
func (f backupHost) SendMissing(ctx context.Context, way io.ReadWriter) error {
	return sendMissingMethod.callStream(ctx, f.remoteHost, none{}, way)
}

var sendMissingMethod = method[none, none]{
	name: "find of backup", callOptions: callOptions{long: true, abandoned: true, displayed: true},
	answer: func(ctx context.Context, c *serverCall, _ none) (none, error) {
		return none{}, c.host().Backups.SendMissing(ctx, c.stream())
	},
}

// Receive makes the remote host store its part of a backup.
func (f backupHost) Receive(ctx context.Context, way io.ReadWriter) error {
	return receiveBackupMethod.callStream(ctx, f.remoteHost, none{}, way)
}

var receiveBackupMethod = method[none, none]{
	name: "lay down backup", callOptions: callOptions{long: true, displayed: true},
	answer: func(ctx context.Context, c *serverCall, _ none) (none, error) {
		return none{}, c.host().Backups.Receive(ctx, c.stream())
	},
}

// Restoring returns how far the remote host's part of a restore has come.
func (f backupHost) Restoring(ctx context.Context) (s *observe.RestoreProgress, err error) {
	s, err = restorePartMethod.call(ctx, f.remoteHost, none{})
	if s != nil {
		sanitizeRestore(s)
	}
	return s, err
}

var restorePartMethod = method[none, *observe.RestoreProgress]{
	name: "part of restore", callOptions: callOptions{maxBytes: listMaxBytes, abandoned: true},
	answer: func(ctx context.Context, c *serverCall, _ none) (*observe.RestoreProgress, error) {
		return c.host().Backups.Restoring(ctx)
	},
}

// sanitizeRestore sanitizes the remote host's report on a restore.
func sanitizeRestore(s *observe.RestoreProgress) {
	s.ID, s.From = sanitizeText(s.ID), sanitizeText(s.From)
	s.Nodes, s.Without = sanitizeList(s.Nodes), sanitizeList(s.Without)
}

// AdvanceRestore takes the remote host's part of a restore one step further.
func (f backupHost) AdvanceRestore(ctx context.Context, id, to string) (told []string, err error) {
	told, err = advanceRestoreMethod.call(ctx, f.remoteHost, restoreStep{id, to})
	return sanitizeList(told), err
}

// A restoreStep says which restore a host must continue, and to which step.
type restoreStep struct {
	ID string `json:"id"`
	To string `json:"to"`
}

var advanceRestoreMethod = method[restoreStep, []string]{
	name: "advance restore", callOptions: callOptions{maxBytes: listMaxBytes, long: true},
	answer: func(ctx context.Context, c *serverCall, step restoreStep) ([]string, error) {
		return c.host().Backups.AdvanceRestore(ctx, step.ID, step.To)
	},
}

// sanitizeList sanitizes the entries of a list and limits their number.
func sanitizeList(all []string) []string {
	all = all[:min(len(all), maxPerSnapshot)]
	for i := range all {
		all[i] = sanitizeText(all[i])
	}
	return all
}
