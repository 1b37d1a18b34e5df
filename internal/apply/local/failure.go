package local

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"orrery/internal/engine/nodedir"
	"orrery/internal/observe"
)

// storeFailure stores why configuring or checking a node failed, so that orrery status can say so. If
// it did not fail, an earlier failure is forgotten. An interrupted run has found out nothing.
func (w roleRun) storeFailure(ctx context.Context, what string, do func() error) error {
	began := time.Now().UTC()
	err := do()
	dir := nodedir.Of(w.Dirs, w.node.Site, w.node.ID)
	record, readErr := dir.Read()
	if ctx.Err() != nil || readErr != nil {
		return err
	}
	var failure *observe.HealthFailure
	if err != nil {
		why := shortError(errors.New(w.Secrets.Redact(err.Error())))
		failure = &observe.HealthFailure{At: began, Found: what + ": " + why, Proven: record.ProvenAt}
	}
	if storeErr := dir.StoreSickness(failure); err == nil && !errors.Is(storeErr, fs.ErrNotExist) {
		return storeErr
	}
	return err
}
