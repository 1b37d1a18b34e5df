package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report"
	"orrery/internal/lab/run"
	"orrery/internal/lab/setting"
	"orrery/internal/phrase"
	"orrery/internal/problem"
)

func (a *app) labRunVerb() *cobra.Command {
	var to string
	var rounds int
	var fresh, show bool
	c := &cobra.Command{
		Use:   "run [EXPERIMENT]",
		Short: "Run an experiment; without a file, compare a container with the bare host",
		Long: `Makes the settings of an experiment, runs its tests in all of them in turn, removes the settings and writes a report.
If a run was interrupted or killed, run the same command to resume.`,
		Example: "  orrery lab run\n  orrery lab run lab/disk.toml --rounds 20",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			e, err := a.experiment(args)
			if err != nil {
				return err
			}
			if show {
				_, err := a.out.Write(e.Text)
				return err
			}
			if c.Flags().Changed("rounds") {
				if rounds < 5 {
					return problem.New(problem.Usage, "--rounds %d: fewer than 5 rounds tell nothing", rounds)
				}
				e.Rounds, e.Most = rounds, max(rounds, e.Most)
			}
			return a.labRun(c.Context(), e, to, fresh)
		},
	}
	c.Flags().StringVar(&to, "to", "", "the `directory` of the bundle (default: one of its own where orrery lab ls looks)")
	c.Flags().IntVar(&rounds, "rounds", 0, "keep at least this many rounds")
	c.Flags().BoolVar(&fresh, "fresh", false, "start again, even if a run of this experiment was interrupted")
	c.Flags().BoolVar(&show, "show", false, "print the experiment instead of running it")
	return c
}

// labRun runs an experiment from wherever a former run of it has come to.
func (a *app) labRun(ctx context.Context, e *experiment.Experiment, to string, fresh bool) (err error) {
	if err := control.NeedRoot(); err != nil {
		return err
	}
	lock, err := host.TakeLock(filepath.Join(a.bundles(), ".lock"), host.Holder{Who: control.Who(), Pid: os.Getpid(), Since: time.Now(), Command: a.Command})
	if err != nil {
		return err
	}
	defer lock.Release()
	book, before, err := a.openBundle(e, to, fresh)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, book.Close()) }()
	stand, done := a.stand(e, book.Site())
	if done == nil {
		done = a.measure(ctx, e, stand, book, before)
		done = errors.Join(done, stand.down(context.WithoutCancel(ctx))) // also when the user has ended the run
	}
	if c, err := bundle.Read(book.Dir()); err == nil && len(c.Trials) == 0 {
		return errors.Join(done, os.RemoveAll(book.Dir())) // nothing was measured
	}
	return errors.Join(done, a.writeReport(book.Dir()))
}

// measure makes the settings, and does the rounds.
func (a *app) measure(ctx context.Context, e *experiment.Experiment, stand *labStand, book *bundle.Writer, before *bundle.Contents) error {
	if err := stand.up(ctx); err != nil {
		return err
	}
	ground, err := stand.ground(ctx)
	if err != nil {
		return err
	}
	watch := newLabWatch(a.err)
	defer watch.Close()
	known, err := stand.facts(ctx, ground)
	if err != nil {
		return err
	}
	if err := book.Facts(known); err != nil {
		return err
	}
	watcher, err := run.OpenWatcher(ctx, e, ground, known.Facts, book.Second)
	if err != nil {
		return err
	}
	defer watcher.Close()
	kept := &labBook{book, before.Head}
	sofar := func(trials []bundle.Trial) *report.Report {
		return report.Analyse(&bundle.Contents{Head: kept.head, Trials: trials})
	}
	r := &run.Run{
		Experiment: e, Ground: ground, Seed: before.Head.Seed, Before: before.Trials, Book: kept, Progress: watch, Watcher: watcher,
		More:  func(trials []bundle.Trial) bool { return sofar(trials).Wide() },
		Worth: func(trials []bundle.Trial, cost float64) float64 { return sofar(trials).Worth(cost) },
		Anew: func(ctx context.Context) (*setting.Ground, error) {
			ground, err := stand.anew(ctx)
			if err != nil {
				return nil, err
			}
			return ground, watcher.Started(ctx)
		},
	}
	if err := r.Check(ctx); err != nil {
		return err
	}
	if err := watcher.Started(ctx); err != nil {
		return err
	}
	err = r.Do(ctx)
	kept.head.Probes = watcher.Cost().Share()
	watch.Close()
	fmt.Fprintf(a.err, "watching the host took %.2f %% of one processor\n", 100*kept.head.Probes)
	ending := kept.end(err)
	return errors.Join(interrupted(err), ending)
}

// interrupted says how a run is gone on with that the user has ended.
func interrupted(err error) error {
	if errors.Is(err, context.Canceled) {
		return problem.New(problem.Interrupted, "interrupted; what was measured is kept").Try("the same command goes on from there")
	}
	return err
}

// openBundle opens the bundle of a run of the experiment that was not brought to its end, or makes a new one.
func (a *app) openBundle(e *experiment.Experiment, to string, fresh bool) (*bundle.Writer, *bundle.Contents, error) {
	digest := sha256.Sum256(e.Text)
	h := bundle.Head{
		Format: bundle.Format, Orrery: Version, Experiment: e.Name, Title: e.Title, Source: e.Source, Digest: hex.EncodeToString(digest[:]), Who: control.Who(),
		Began: time.Now(), State: bundle.Running, Seed: rand.Uint64() >> 11, Width: e.Width, Disturbed: e.Disturbed,
		Settings: labSettings(e), Tests: labTests(e),
	}
	h.Host, _ = os.Hostname()
	dir := to
	if dir == "" {
		dir = filepath.Join(a.bundles(), e.Name+"-"+h.Began.Format("20060102-150405"))
	}
	if last := a.unfinishedBundle(h, to); last != "" && !fresh {
		w, c, err := bundle.Open(last, h.Who)
		if err == nil {
			fmt.Fprintf(a.err, "going on with %s, which has %s so far (--fresh begins anew)\n", last, phrase.Count(max(0, c.Head.Rounds-1), "round"))
			c.Head.State = bundle.Running
		}
		return w, c, err
	}
	h.ID = filepath.Base(dir)
	w, err := bundle.Create(dir, h)
	if err != nil {
		return nil, nil, err
	}
	return w, &bundle.Contents{Dir: dir, Head: h}, w.Experiment(e.Text)
}

// unfinishedBundle gives the last bundle of the same experiment that is not done, or "".
func (a *app) unfinishedBundle(h bundle.Head, to string) string {
	if to != "" {
		c, err := bundle.Read(to)
		if err == nil && c.Head.Digest == h.Digest && c.Head.State != bundle.Done {
			return to
		}
		return ""
	}
	heads, _ := bundle.List(a.bundles())
	last := ""
	for _, b := range heads {
		if b.Digest == h.Digest && b.State != bundle.Done && b.Orrery == h.Orrery {
			last = filepath.Join(a.bundles(), b.ID)
		}
	}
	return last
}

// A labBook keeps trials, and the head of the bundle up to date.
type labBook struct {
	*bundle.Writer
	head bundle.Head
}

// Round notes that so many rounds are complete.
func (b *labBook) Round(complete int) error {
	b.head.Rounds = max(b.head.Rounds, complete)
	return b.Save(b.head)
}

// end notes how the run ended.
func (b *labBook) end(err error) error {
	if b.head.State = bundle.Done; err != nil {
		b.head.State = bundle.Interrupted
	}
	b.head.Ended = time.Now()
	return b.Save(b.head)
}

// labSettings tells the settings of an experiment.
func labSettings(e *experiment.Experiment) []bundle.Setting {
	all := []bundle.Setting{
		{Name: experiment.Bare, About: "this host, with the same binaries as the nodes"},
		{Name: experiment.Control, About: "the same once more: what a comparison of the same with the same gives", Again: experiment.Bare},
	}
	stand := setting.New(e, "", nil)
	for _, s := range e.Settings {
		is := bundle.Setting{Name: s.Name, About: setting.About(s), Again: s.Again, Missing: s.Missing}
		if s.Again != "" {
			is.About = s.Again + " once more: what a container differs by from itself"
		}
		if s.Missing == "" {
			is.Nodes = stand.Nodes(s)
		}
		all = append(all, is)
	}
	return all
}

// labTests tells the tests of an experiment, one for each number of copies.
func labTests(e *experiment.Experiment) []bundle.Test {
	var all []bundle.Test
	for _, u := range run.Units(e) {
		all = append(all, bundle.Test{Name: u.Title, Kind: u.Kind, Copies: u.Copies, Figures: u.Figures(), Source: cmp.Or(u.Source, e.Source)})
	}
	return all
}
