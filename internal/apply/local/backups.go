package local

import (
	"context"
	"io"

	"orrery/internal/backup"
	"orrery/internal/backup/ferry"
	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

func (h backupHost) ferrySite() ferry.HostSite {
	return ferry.HostSite{Dirs: h.Dirs, Key: h.Key, Engines: h.Engines, Guard: h.Guard}
}

// Send sends this machine's part of the site.
func (h backupHost) Send(ctx context.Context, way io.ReadWriter) error {
	return ferry.SendBackup(ctx, h.ferrySite(), way)
}

// SendMissing sends what backups have lost of the data that this machine sent.
func (h backupHost) SendMissing(ctx context.Context, way io.ReadWriter) error {
	return ferry.SendMissing(ctx, h.ferrySite(), way)
}

// Receive stores this machine's part of a backup.
func (h backupHost) Receive(ctx context.Context, way io.ReadWriter) error {
	return ferry.StageRestore(ctx, h.ferrySite(), way)
}

// part returns this machine's part of a restore, or nil if it has none.
func (h backupHost) part() (*backup.Part, error) {
	return backup.OpenPart(h.Dirs, image.Open(h.Dirs.State), h.Key)
}

// Restoring returns how far that part has come.
func (h backupHost) Restoring(context.Context) (*observe.RestoreProgress, error) {
	r, err := h.part()
	if err != nil || r == nil {
		return nil, err
	}
	return r.State(), nil
}

// AdvanceRestore takes that part one step further. If there is no part, it has already ended or was
// dropped.
func (h backupHost) AdvanceRestore(ctx context.Context, id, to string) ([]string, error) {
	r, err := h.part()
	if err != nil {
		return nil, err
	}
	if r == nil && (to == backup.StepFinish || to == backup.StepDrop || to == backup.StepAbort) {
		return nil, nil
	}
	if r == nil || r.ID != id && to != backup.StepAbort {
		return nil, problem.New(problem.Surprise, "no files of backup %s were restored on this host", id).
			Try("run the same orrery restore again")
	}
	// wait until no part is being received
	lock, err := backup.TakeLock(ctx, h.Dirs, h.Key, host.NewHolder("root", "orrery restore"))
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	return r.Advance(ctx, to, h.Engines)
}

// fillRestored fills a new node with its data from the backup that is being restored.
func (h backupHost) fillRestored(ctx context.Context, e engine.Engine, n *spec.Node) error {
	r, err := h.part()
	if err != nil || r == nil || !r.State().Placed {
		return err
	}
	return r.Fill(ctx, e, n)
}

// sweepRestore ends a restore that was not ended although its nodes have their data.
func (h backupHost) sweepRestore() error {
	r, err := h.part()
	if err != nil || r == nil || !r.IsComplete() {
		return err
	}
	return r.Finish(h.Engines)
}
