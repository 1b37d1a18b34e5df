package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"orrery/internal/apply"
	"orrery/internal/apply/local"
	"orrery/internal/host"
	"orrery/internal/journal"
	"orrery/internal/plan"
	"orrery/internal/site"
)

// locked does something to a site that is no plan: it holds the lock, clears away what killed runs left, and keeps the journal.
func (a *app) locked(ctx context.Context, s *site.Site, h *local.Host, do func() error) error {
	letGo, err := a.hold(ctx, s)
	if err != nil {
		return err
	}
	defer letGo()
	if err := h.Sweep(ctx); err != nil {
		return err
	}
	return a.journalled(s, h, do)
}

// hold takes the lock of a site for somebody who may change it.
func (a *app) hold(ctx context.Context, s *site.Site) (letGo func(), err error) {
	if err := needRoot(); err != nil {
		return nil, err
	}
	if err := a.mayChange(s); err != nil {
		return nil, err
	}
	evict, err := host.HoldInMemory(a.dirs.Run)
	if err != nil {
		return nil, err
	}
	lock, err := a.lock(ctx, s)
	if err != nil {
		evict()
		return nil, err
	}
	return func() { lock.Release(); evict() }, nil
}

// lock takes the lock of a site.
func (a *app) lock(ctx context.Context, s *site.Site) (*host.Lock, error) {
	if a.patient {
		return a.patiently(ctx, s)
	}
	return host.TakeLock(a.dirs.Lock(s.Key()), host.Holder{Who: who(), Pid: os.Getpid(), Since: time.Now(), Command: a.command})
}

// journalled notes in the journal that something is done, and how it ended.
func (a *app) journalled(s *site.Site, h *local.Host, do func() error) error {
	record, err := journal.Open(a.dirs.Journal(s.Key()))
	if err != nil {
		return err
	}
	defer record.Close() //nolint:errcheck // every entry has been written by then
	began := time.Now()
	id := fmt.Sprintf("%x", began.UnixNano())
	if err := record.Add(journal.Entry{Time: began, Run: id, Kind: "begin", Who: who(), Command: a.command}); err != nil {
		return err
	}
	err = do()
	end := journal.Entry{Time: time.Now(), Run: id, Kind: "end", Result: "done", Seconds: time.Since(began).Seconds()}
	if err != nil {
		end.Result = h.Keys.Redact(err.Error())
	}
	return errors.Join(err, record.Add(end))
}

// carryOut does steps within something that is locked, and gives what went wrong with them.
func (a *app) carryOut(ctx context.Context, h *local.Host, steps []*plan.Step) error {
	if len(steps) == 0 {
		return nil
	}
	for n, s := range steps {
		s.N, s.Host = n, h.Name
	}
	p := &plan.Plan{Site: h.Site.Name, Steps: steps}
	watch := newProgress(a.err, p)
	result := apply.Run(ctx, p, map[string]apply.Worker{h.Name: h}, watch, defaultParallel())
	watch.Close()
	var err error
	for _, f := range result.Failed {
		err = errors.Join(err, fmt.Errorf("%s: %s: %w", f.Step.Title(), f.Step.Kind, f.Err))
	}
	if err == nil && len(result.Skipped) > 0 {
		err = context.Cause(ctx)
	}
	return err
}
