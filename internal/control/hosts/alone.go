package hosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control/here"
	"orrery/internal/control/register"
	"orrery/internal/control/trial"
	"orrery/internal/hook"
	"orrery/internal/host"
	"orrery/internal/host/schedule"
	"orrery/internal/journal"
	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/role"
	"orrery/internal/secret"
	"orrery/internal/site"
	"orrery/internal/site/check"
	"orrery/internal/site/spec"
	"orrery/internal/waits"
)

// An Alone host watches over a trial on itself, without the others and without the site directory. It goes back when the time is over, unless it has been told by then that the release is
// confirmed. That its checks fail it takes down, for whoever would confirm: it does not go back before the others do.
type Alone struct {
	Machine here.Machine
	Dirs    host.Dirs
	Key     string // of the site
	Say     func(error)

	host apply.Host
	back apply.UnattendedPlan
	bad  int // rounds in a row in which a check failed

	command string // what it is at, for locks and the journal; "": a trial
}

// failures is how often in a row a check fails before that is taken down.
const failures = 3

// Watch goes on until the trial is over. That it has not ended well is the error.
func (a *Alone) Watch(ctx context.Context) error {
	if err := a.Machine.Allowed(); err != nil {
		return err
	}
	ctx = waits.Telling(ctx, func(text string) { a.Say(errors.New(text)) })
	s, err := keyed(a.Key)
	if err != nil {
		return err
	}
	r, err := a.watch(ctx)
	if err == nil {
		_, err = Verdict(s, r)
	}
	return err
}

// keyed gives as much of a site, or of a twin, as its key says.
func keyed(key string) (*site.Site, error) {
	name, twin, is := strings.Cut(key, ".")
	if !check.Label(name) || is && !check.Label(twin) {
		return nil, problem.New(problem.Usage, "%q is not the key of a site", key)
	}
	return &site.Site{Name: name, Twin: twin}, nil
}

// watch gives what is on record when it is over.
func (a *Alone) watch(ctx context.Context) (observe.Releases, error) {
	lock, err := a.watchLock(ctx)
	if err != nil {
		return observe.Releases{}, err
	}
	defer lock.Release()
	if err := a.read(); err != nil {
		return observe.Releases{}, err
	}
	a.host = a.Machine.Host(a.back.Host, a.Key, own{secret.NewKeyring(&site.Site{Name: a.Key}, a.Dirs), a})
	w := &trial.Watch{
		Look:    func() (observe.Releases, error) { return a.host.Releases.Read(ctx) },
		Lives:   func(int) bool { return host.Held(a.Dirs.Lock(a.Key)) }, // of whoever steers, only the lock is here
		Sick:    a.look,
		Confirm: func(context.Context) error { return errors.New("nobody has confirmed it") },
		GoBack:  a.goBack,
		Now:     host.Now,
		Wait:    func(ctx context.Context, d time.Duration) { _ = host.Pause(ctx, d) },
		Say:     a.Say,
	}
	return w.Run(ctx)
}

// read reads how this host goes back. That is another way after each change of the site.
func (a *Alone) read() error {
	back, err := apply.ReadUnattended(a.Dirs, a.Key, apply.OnTrial)
	if err != nil {
		return problem.New(problem.Failed, "how this host goes back from the trial of site %s cannot be read", a.Key).At(apply.UnattendedPath(a.Dirs, a.Key, apply.OnTrial)).Because(err).
			Try("orrery rollback, from a machine with the site directory")
	}
	a.back = back
	return nil
}

// WatchTimeout is how long whoever is to watch over a trial waits for its lock.
const WatchTimeout = 5 * time.Second

// TrialLock is held by whoever watches over a trial of a site on this machine, so that others know that somebody does.
func TrialLock(dirs host.Dirs, key string) string { return filepath.Join(dirs.Site(key), "trial.lock") }

// watchLock takes the lock of whoever watches. Somebody who just asks whether it is held has it for a moment.
func (a *Alone) watchLock(ctx context.Context) (*host.Lock, error) {
	return host.TakeLockWithin(ctx, WatchTimeout, TrialLock(a.Dirs, a.Key), a.holder())
}

func (a *Alone) holder() host.Holder {
	return host.NewHolder("root", cmp.Or(a.command, "orrery host-run "+a.Key+" "+apply.OnTrial))
}

// instead gives the verb that does the same from where the secrets are.
func (a *Alone) instead() string {
	if a.command != "" {
		return "up"
	}
	return "rollback"
}

// look tries the checks of what is on trial here. It never says that the host is to go back: that is for the time to say.
func (a *Alone) look(ctx context.Context, _ []string) (string, error) {
	r, err := a.host.Releases.Read(ctx)
	if err != nil || r.Trial == nil || r.Trial.Failed != "" {
		return "", nil //nolint:nilerr // the next round sees
	}
	left := r.Trial.Left(host.Now())
	if err := a.read(); err != nil {
		a.Say(err)
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, max(left, time.Second))
	defer cancel()
	for _, w := range a.back.Checks {
		in, err := a.host.Nodes.Runner(w.Node)
		if err == nil {
			err = role.Probe(ctx, in, w.Duties)
		}
		if ctx.Err() != nil {
			return "", nil
		}
		if err != nil {
			if a.bad++; a.bad >= failures {
				a.fail(ctx, fmt.Sprintf("node %s is unhealthy: %v", w.Node.Name, err))
			}
			return "", nil
		}
	}
	a.bad = 0
	return "", nil
}

// fail takes down that the release is not to be confirmed. What is on record is the same of a name as before: it is of this host only.
func (a *Alone) fail(ctx context.Context, why string) {
	letGo, err := a.host.Runs.Lock(ctx, a.holder())
	if err != nil {
		return // somebody is at work; the next round tries again
	}
	defer letGo()
	r, err := a.host.Releases.Read(ctx)
	if err != nil || r.Trial == nil || r.Switch != nil {
		return
	}
	r.Trial.Failed = problem.Short(why, 300)
	if err := a.host.Releases.Copy(r); err != nil {
		a.Say(err)
	}
}

// goBack goes back from the trial with what is on this host. Whoever is at work is waited for, and may have ended it.
func (a *Alone) goBack(ctx context.Context, _ string) error {
	var letGo func()
	err := waits.For(ctx, "site "+a.Key, func() (held waits.Held, err error) {
		letGo, err = a.host.Runs.Lock(ctx, a.holder())
		return waits.Locked(err)
	})
	if err != nil {
		return err
	}
	defer letGo()
	r, err := a.host.Releases.Read(ctx)
	if err != nil || r.Trial == nil {
		return err
	}
	if err := a.read(); err != nil {
		return err
	}
	if err := a.host.Runs.Sweep(ctx); err != nil {
		return err
	}
	if r.Switch == nil || !r.Switch.Alone {
		r.Switch = a.back.Intent
		if err := a.host.Releases.Write(r); err != nil {
			return err
		}
	}
	steps, err := apply.Decoded(a.back.Steps)
	if err != nil {
		return err
	}
	for _, s := range steps {
		if s.Kind == plan.CommitSwitch { // of what is here, and of what other hosts will have here
			is := *s.Releases
			is.Staged, is.ID, is.Past = r.Staged, r.ID, r.Past
			s.Releases = &is
		}
	}
	if err := a.do(ctx, steps); err != nil {
		return err
	}
	if err := a.tell(ctx); err != nil {
		a.Say(err)
	}
	return nil
}

// tell lets the hooks of the site know that this host has gone back. Of several hosts, each says so of itself: none knows whether others could.
func (a *Alone) tell(ctx context.Context) error {
	r, err := a.host.Releases.Read(ctx)
	if err != nil || r.Ended == nil {
		return err
	}
	s, err := keyed(a.Key)
	if err != nil {
		return err
	}
	s.Hooks = a.back.Hooks
	return notify(ctx, a.Machine, a.Dirs, s, hook.Event{Event: site.TrialEnded, Result: r.Ended.Result, Why: r.Ended.Why, Release: &r.Ended.Release})
}

// hooksOn returns the hooks of a site that are notified of an event.
func hooksOn(s *site.Site, event string) []site.Hook {
	return slices.DeleteFunc(slices.Clone(s.Hooks), func(k site.Hook) bool { return !slices.Contains(k.On, event) })
}

// notify lets the hooks of a site know of what this machine has done by itself.
func notify(ctx context.Context, m here.Machine, dirs host.Dirs, s *site.Site, e hook.Event) error {
	e.Who, e.Time = "root", time.Now()
	some, err := hook.Post(dirs, s, e)
	if err == nil && some {
		err = m.Later(ctx, schedule.Job{Name: "hooks-" + s.Key(), Args: []string{"hook", s.Key()}})
	}
	if err != nil {
		err = problem.New(problem.Failed, "the hooks of site %s cannot be notified of %s", s.Name, e.Event).Because(err)
	}
	return err
}

// do does the steps, and keeps the journal.
func (a *Alone) do(ctx context.Context, steps []*plan.Step) error {
	book, err := a.host.Runs.OpenJournal()
	if err != nil {
		return err
	}
	defer book.Close() //nolint:errcheck // every entry has been written by then
	began := time.Now()
	run := fmt.Sprintf("%x", began.UnixNano())
	note := func(e journal.Entry) {
		e.Time, e.Run = time.Now(), run
		_ = book.Add(e) // what is done counts
	}
	note(journal.Entry{Kind: "begin", Who: "root", Command: cmp.Or(a.command, "the end of a trial")})
	result := apply.Run(ctx, &plan.Plan{Site: a.Key, Steps: steps}, map[string]apply.Worker{a.back.Host: a.host.Runs}, steady{note, a.Say}, max(8, 4*runtime.NumCPU()))
	for _, f := range result.Failed {
		err = errors.Join(err, fmt.Errorf("%s: %s: %w", f.Step.Title(), f.Step.Kind, f.Err))
	}
	if err == nil && len(result.Skipped) > 0 {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = a.host.Runs.DiscardUndo(ctx, result.Done)
	}
	end := journal.Entry{Kind: "end", Result: "done", Seconds: time.Since(began).Seconds()}
	if err != nil {
		end.Result = err.Error()
	}
	note(end)
	return err
}

// steady notes the steps.
type steady struct {
	note func(journal.Entry)
	say  func(error)
}

func (steady) Begin(*plan.Step)          {}
func (steady) Detail(*plan.Step, string) {}
func (w steady) Waits(s *plan.Step, text string) {
	w.say(fmt.Errorf("%s: %s", s.Doing(), text))
}
func (w steady) End(s *plan.Step, err error) {
	e := journal.Entry{Kind: "step", Step: s.String(), Result: "done"}
	if err != nil {
		e.Result = err.Error()
	}
	w.note(e)
}

// own are the secrets of a host that is alone: copies of generated ones.
type own struct {
	*secret.Keyring
	of *Alone
}

// Value gives what the host has.
func (s own) Value(ctx context.Context, name string) (string, error) {
	v, err := s.of.host.Secrets.Read(ctx, name)
	if err != nil {
		return "", problem.New(problem.Failed, "secret %s is not on this host", name).Because(err).Try("orrery %s, from a machine that has it", s.of.instead())
	}
	return v, nil
}

// Text cannot be had here: it takes the site directory.
func (s own) Text(_ context.Context, t spec.SecretText) ([]byte, error) {
	return nil, problem.New(problem.Failed, "%s of node %s has secrets in it, which are not on this host", t.Path, t.Node).Try("orrery %s, from a machine with the site directory", s.of.instead())
}

// Failing tells what hosts have taken down that fails of a trial, as far as they answer.
func Failing(ctx context.Context, f *apply.Fleet) (why map[string]string, err error) {
	all := make([]string, len(f.All))
	err = f.Each(func(i int, h *apply.Steered) error {
		r, err := h.Releases.Read(ctx)
		if err == nil && r.Trial != nil {
			all[i] = problem.Short(r.Trial.Failed, 300) // it comes from there
		}
		return err
	})
	why = map[string]string{}
	for i, text := range all {
		if text != "" {
			why[f.All[i].Name] = text
		}
	}
	return why, err
}

// FirstOf gives the name of the host that is the first of some.
func FirstOf(why map[string]string) string { return slices.Sorted(maps.Keys(why))[0] }

// MayConfirm refuses to confirm a release that has failed on some host.
func MayConfirm(ctx context.Context, f *apply.Fleet, key string, t *observe.Trial) error {
	failing, err := Failing(ctx, f)
	if err != nil || len(failing) == 0 {
		return err
	}
	on := FirstOf(failing)
	return problem.New(problem.Refused, "release %d has failed on host %s: %s", t.Release, on, failing[on]).At(key).
		Try("orrery rollback returns at once; at %s all hosts do", phrase.Clock(t.Until))
}

// TellTrial tells of a trial that is under way, and on which hosts it has failed.
func (c *Call) TellTrial(ctx context.Context, f *apply.Fleet, r observe.Releases) error {
	if r.Trial == nil || r.Switch != nil {
		return nil
	}
	until, back := phrase.Clock(r.Trial.Until), register.ReleaseNames(r.Trial.Back)
	switch {
	case f.Own() && !host.Held(TrialLock(c.Dirs, c.Site.Key())):
		c.Notice("release %d is on trial until %s, but nobody watches over it: the process that did has ended (orrery resume, and whatever changes the site, sees to it)",
			r.Trial.Release, until)
	case f.Own() && !r.Trial.ByHand:
		c.Notice("release %d is on trial until %s; then it is confirmed or goes back to release %s", r.Trial.Release, until, back)
	case len(f.All)+len(f.Unknown) == 1:
		c.Notice("release %d is on trial until %s; unless it is confirmed by then (orrery confirm), it goes back to release %s", r.Trial.Release, until, back)
	default:
		c.Notice("release %d is on trial until %s; unless it is confirmed by then (orrery confirm), each host goes back to release %s", r.Trial.Release, until, back)
	}
	failing, err := Failing(ctx, f)
	for _, name := range slices.Sorted(maps.Keys(failing)) {
		c.Notice("it has failed on host %s: %s", name, failing[name])
	}
	return err
}
