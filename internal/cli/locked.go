package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"orrery/internal/apply"
	"orrery/internal/apply/local"
	"orrery/internal/host"
	"orrery/internal/journal"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// locked does something to a site that is no plan: it holds the lock, clears away what killed runs left, and keeps the journal.
func (a *app) locked(ctx context.Context, s *site.Site, h *local.Host, do func(*account) error) error {
	if err := a.catchUp(ctx, s, h); err != nil {
		return err
	}
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
	if err := a.dirs.Close(s.Key()); err != nil {
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
	if err := a.dirs.Claim(s.Key()); err != nil {
		lock.Release()
		evict()
		return nil, err
	}
	return func() {
		a.dirs.Yield(s.Key())
		lock.Release()
		evict()
	}, nil
}

// lock takes the lock of a site; who is patient waits for whoever has it.
func (a *app) lock(ctx context.Context, s *site.Site) (*host.Lock, error) {
	for {
		lock, err := host.TakeLock(a.dirs.Lock(s.Key()), host.Holder{Who: who(), Pid: os.Getpid(), Since: time.Now(), Command: a.command})
		if !a.patient || err == nil || problem.Exit(err) != int(problem.Locked) {
			return lock, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// patiently gives an app that waits for whoever else is at work.
func (a *app) patiently() *app {
	b := *a
	b.patient = true
	return &b
}

// An account is the entries of something in a site's journal.
type account struct {
	*journal.Journal
	run   string // by which the entries know one another
	began time.Time
}

// begin notes in a site's journal that something begins.
func (a *app) begin(s *site.Site, command string) (*account, error) {
	record, err := journal.Open(a.dirs.Journal(s.Key()))
	if err != nil {
		return nil, err
	}
	began := time.Now()
	run := fmt.Sprintf("%x", began.UnixNano())
	if err := record.Add(journal.Entry{Time: began, Run: run, Kind: "begin", Who: who(), Command: command}); err != nil {
		record.Close() //nolint:errcheck // the error to tell is that before
		return nil, err
	}
	return &account{record, run, began}, nil
}

// end notes how it ended.
func (r *account) end(result string) error {
	defer r.Close() //nolint:errcheck // every entry has been written by then
	return r.Add(journal.Entry{Time: time.Now(), Run: r.run, Kind: "end", Result: result, Seconds: time.Since(r.began).Seconds()})
}

// outcome gives how something ended that may have failed.
func outcome(err error, redact func(string) string) string {
	if err == nil {
		return "done"
	}
	return redact(err.Error())
}

// note adds to a site's journal what was done to it outside a plan.
func (a *app) note(s *site.Site, command, result string) error {
	record, err := a.begin(s, command)
	if err != nil {
		return err
	}
	return record.end(result)
}

// journalled notes in the journal that something is done, and how it ended.
func (a *app) journalled(s *site.Site, h *local.Host, do func(*account) error) error {
	record, err := a.begin(s, a.command)
	if err != nil {
		return err
	}
	err = do(record)
	return errors.Join(err, record.end(outcome(err, h.Keys.Redact)))
}

// carryOut carries out a plan on one host, shows it, and notes every step as an entry of this kind.
func (r *account) carryOut(ctx context.Context, show io.Writer, h *local.Host, kind string, p *plan.Plan, parallel int) *apply.Result {
	watch := newProgress(show, p, h.Took)
	defer watch.Close()
	noted := &recorded{progress: watch, account: r, kind: kind, redact: h.Keys.Redact, began: map[int]time.Time{}}
	return apply.Run(ctx, p, map[string]apply.Worker{h.Name: h}, noted, parallel)
}

// carryOut does steps within something that is locked, and gives what went wrong with them.
func (a *app) carryOut(ctx context.Context, record *account, h *local.Host, steps []*plan.Step) error {
	if len(steps) == 0 {
		return nil
	}
	for n, s := range steps {
		s.N, s.Host = n, h.Name
	}
	p := &plan.Plan{Site: h.Site.Name, Steps: steps}
	result := record.carryOut(ctx, a.err, h, "step", p, defaultParallel())
	var err error
	for _, f := range result.Failed {
		err = errors.Join(err, fmt.Errorf("%s: %s: %w", f.Step.Title(), f.Step.Kind, f.Err))
	}
	if err == nil && len(result.Skipped) > 0 {
		err = context.Cause(ctx)
	}
	return err
}
