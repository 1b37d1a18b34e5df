// Package lab runs experiments on this host and stores their bundles. The nodes of an experiment are
// a site that exists only during the run.
package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report"
	"orrery/internal/lab/run"
	"orrery/internal/lab/setting"
	"orrery/internal/problem"
)

// Options say what to run.
type Options struct {
	Experiment *experiment.Experiment
	To         string // directory of the bundle, or "" for a new one in the default directory
	Goal
	Fresh    bool              // start again, even if a run of this experiment was interrupted
	Orrery   string            // the version of this program
	Programs map[string][]byte // programs of Orrery that were sent here; others are installed beside this one
}

// A Watcher displays the progress of a run. The Watcher of the session displays the steps for the
// settings.
type Watcher interface {
	run.Progress
	Close() // called when the rounds are over
	// Resumed reports that a run with the given number of complete rounds is resumed.
	Resumed(dir string, rounds int)
	// NotResumed reports a run that is not resumed because the conditions have changed.
	NotResumed(dir, why string)
	// ObserverCost reports the cost of observing the host, as a share of one processor.
	ObserverCost(share float64)
	// Deferred returns a watcher for recreating nodes, and a function that displays what the watcher
	// was told. Show is called only after a failure.
	Deferred() (w control.Watcher, show func())
}

// A StoredReport is a report in its bundle.
type StoredReport struct {
	Dir    string
	Report *report.Report
}

// Run runs an experiment, and resumes a former run of it if there is one. If anything was measured,
// it writes a report, however the run ended.
func Run(ctx context.Context, c *control.Session, w Watcher, o Options) (made *StoredReport, err error) {
	if err := c.Allowed(); err != nil {
		return nil, err
	}
	if err := o.Goal.set(o.Experiment); err != nil {
		return nil, err
	}
	// Users of the host need not list the directory, but nodes must reach what is below it. Former
	// versions made it readable for all.
	err = os.MkdirAll(Bundles(c), 0o711)
	if err == nil {
		err = os.Chmod(Bundles(c), 0o711)
	}
	if err != nil {
		return nil, problem.New(problem.Failed, "the directory of measurements cannot be created").At(Bundles(c)).
			Because(err).Try("check that the file system of the state directory is writable")
	}
	lock, err := host.TakeLock(ctx, filepath.Join(Bundles(c), lockFile), control.Holder(c))
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	if err := checkExclusive(c); err != nil {
		return nil, err
	}
	if o.Experiment, err = onHost(ctx, c, o.Experiment); err != nil {
		return nil, err
	}
	sent := filepath.Join(Bundles(c), ".programs")
	if err := writePrograms(sent, o.Programs); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(sent)) }()
	if _, err := tools(setting.New(o.Experiment, "", nil).Needs.Tools, sent); err != nil {
		return nil, err // before anything is built
	}
	book, before, err := openBundle(ctx, c, w, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, book.Close()) }()
	stand, done := newLabSite(ctx, c, o.Experiment, book.SiteDir())
	if done == nil {
		stand.sent = sent
		done = measure(ctx, w, o, stand, book, before)
		done = errors.Join(done, stand.down(context.WithoutCancel(ctx))) // even if the user has interrupted the run
	}
	if c, err := bundle.Read(book.Dir()); err == nil && len(c.Trials) == 0 {
		return nil, errors.Join(done, os.RemoveAll(book.Dir())) // nothing was measured
	}
	made, err = WriteReport(book.Dir())
	if err == nil && done == nil {
		done = checkFigures(made.Report)
	}
	return made, errors.Join(done, err)
}

// checkFigures returns an error if a test yielded no figure in any setting, so that scripts notice.
func checkFigures(r *report.Report) error {
	var all problem.List
	for _, f := range r.Tests.WithoutResults() {
		all = append(all, problem.New(problem.Failed, "test %s has no figure in any setting: %s", f.Setting, f.Reason).
			Try("its output is in the report"))
	}
	if len(all) > 0 {
		return all
	}
	return nil
}

// WriteReport writes the report of a bundle. For a damaged bundle, it writes a report of what is
// left, and returns an error.
func WriteReport(dir string) (*StoredReport, error) {
	c, err := bundle.Read(dir)
	if err != nil {
		return nil, err
	}
	r := report.Analyse(c)
	if err := r.Write(dir); err != nil {
		return nil, err
	}
	return &StoredReport{dir, r}, c.Damaged.OrNil()
}

// measure creates the settings, runs the rounds, and records how the run ended.
func measure(ctx context.Context, w Watcher, o Options, stand *labSite, writer *bundle.Writer,
	before *bundle.Contents) error {
	kept := &recorder{writer, before.Manifest}
	err := rounds(ctx, w, o, stand, kept, before)
	ending := kept.end(err)
	return errors.Join(explainInterrupt(err), ending)
}

func rounds(ctx context.Context, w Watcher, o Options, stand *labSite, kept *recorder, before *bundle.Contents) error {
	e := o.Experiment
	if err := stand.begin(ctx, w.Deferred); err != nil {
		return err
	}
	ground, err := stand.environment(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	known, err := stand.facts(ctx, ground)
	if err != nil {
		return err
	}
	if err := kept.facts(known, before.Facts); err != nil {
		return err
	}
	watcher, err := run.OpenWatcher(ctx, e, ground, known.Facts, kept.AppendSecond)
	if err != nil {
		return err
	}
	defer watcher.Close()
	sofar := func(trials []bundle.Trial) *report.Report {
		return report.Analyse(&bundle.Contents{Manifest: kept.head, Trials: trials})
	}
	r := &run.Run{
		Experiment: e, Places: ground, Seed: before.Manifest.Seed, Before: before.Trials, Recorder: kept, Progress: w,
		Watcher: watcher, Budget: o.Budget,
		More:  func(trials []bundle.Trial) bool { return sofar(trials).NeedsMoreRounds() },
		Worth: func(trials []bundle.Trial, cost float64) float64 { return sofar(trials).RoundsPerInstance(cost) },
		Recreate: func(ctx context.Context) (*setting.Places, error) {
			ground, err := stand.recreate(ctx, w.Deferred)
			if err != nil {
				return nil, err
			}
			return ground, watcher.WaitUntilIdle(ctx)
		},
	}
	if err := r.Check(ctx); err != nil {
		return err
	}
	if err := watcher.WaitUntilIdle(ctx); err != nil {
		return err
	}
	err = r.Do(ctx)
	kept.head.Probes = watcher.Cost().Share()
	w.Close()
	w.ObserverCost(kept.head.Probes)
	return err
}

// explainInterrupt replaces the error of a run that the user interrupted by one that says how to resume
// it.
func explainInterrupt(err error) error {
	if errors.Is(err, context.Canceled) {
		return problem.New(problem.Interrupted, "interrupted; measurements so far are kept").
			Try("run the same command to resume")
	}
	return err
}
