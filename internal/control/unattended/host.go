package unattended

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control/here"
	"orrery/internal/control/hosts"
	"orrery/internal/control/register"
	"orrery/internal/host"
	"orrery/internal/host/schedule"
	"orrery/internal/host/waits"
	"orrery/internal/journal"
	"orrery/internal/journal/hook"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/secret"
	"orrery/internal/site"
	"orrery/internal/site/check"
	"orrery/internal/site/sitefile"
	"orrery/internal/site/spec"
)

// A Host is this machine while it carries out one of its plans for a site.
type Host struct {
	Machine here.Machine
	Dirs    host.Dirs
	Key     string                           // key of the site
	Say     func(error)                      // reports an error after which the host tries again
	Tell    func(format string, args ...any) // reports what was done
	Work    SiteWork                         // for routines, or nil

	host apply.Host
	plan apply.UnattendedPlan

	// set if the site has no other host and its directory can be read
	call  *hosts.Connector
	fleet *apply.Fleet // nil if the site directory is missing or cannot be read
}

// Run carries out the plan that the host has stored for a trigger, or one part of the plan.
func (h *Host) Run(ctx context.Context, trigger, part string) error {
	if err := h.Machine.Allowed(); err != nil {
		return err
	}
	if _, err := siteByKey(h.Key); err != nil {
		return err
	}
	t := findTrigger(trigger)
	if t == nil {
		return problem.New(problem.Usage, "%q is not the name of a trigger", trigger)
	}
	touchHelperDir(h.Dirs)
	ctx = waits.WithReporter(ctx, func(text string) { h.Say(errors.New(text)) })
	if err := h.readPlan(trigger); err != nil {
		return err
	}
	h.host = h.Machine.Host(h.plan.Host, h.Key, hostSecrets{secret.NewKeyring(&site.Site{Name: h.Key}, h.Dirs), h})
	if h.plan.Dir != "" {
		if err := h.loadSite(ctx); err != nil {
			h.Say(err) // continue with what this host has stored
		}
	}
	return t.Run(ctx, h, part)
}

// loadSite reads the site directory, like the control host. The directory has secrets that the host
// does not store, and what is needed to make a new plan.
func (h *Host) loadSite(ctx context.Context) error {
	s, err := sitefile.Load(h.plan.Dir)
	if _, name, twin := strings.Cut(h.Key, "."); err == nil && twin {
		s, err = register.Register{Dirs: h.Dirs}.AsTwin(s, name, 0)
	}
	if err != nil {
		return err
	}
	if s.Key() != h.Key || len(hosts.RemoteNames(s)) > 0 {
		return problem.New(problem.Surprise, "site %s was replaced by another one, or has other hosts", h.Key).At(h.plan.Dir).
			Try("%s", h.manualCommand())
	}
	c := &hosts.Connector{Machine: h.Machine, Dirs: h.Dirs, Site: s, Dir: h.plan.Dir, Links: &hosts.Links{},
		Notice: func(format string, args ...any) { h.Say(fmt.Errorf(format, args...)) }}
	f, _, err := c.Connect(ctx)
	if err == nil {
		err = c.Releases(f).LoadReleases(ctx, h.plan.Intent.To)
	}
	if err == nil {
		h.call, h.fleet, h.host = c, f, f.All[0].Host
	}
	return err
}

// readPlan reads the stored plan. The control host may replace the plan at any time.
func (h *Host) readPlan(trigger string) error {
	p, err := apply.ReadUnattended(h.Dirs, h.Key, trigger)
	if err == nil && p.Dir != "" && p.Intent == nil {
		err = errors.New("it does not name the switch")
	}
	if err != nil {
		return problem.New(problem.Failed, "the plan of this host for site %s (%s) cannot be read", h.Key, trigger).
			At(apply.UnattendedPath(h.Dirs, h.Key, trigger)).Because(err).
			Try("run orrery up on a machine with the site directory")
	}
	h.plan = p
	return nil
}

// command returns the command line for locks and the journal.
func (h *Host) command() string { return "orrery host-run " + h.Key + " " + h.plan.Trigger }

// manualCommand returns the command that does the same from a machine that has the secrets.
func (h *Host) manualCommand() string {
	if h.plan.Trigger == apply.TriggerTrial {
		return "orrery rollback"
	}
	return "orrery up"
}

// lock takes the lock of the site on this host, and removes what killed runs left.
func (h *Host) lock(ctx context.Context) (letGo func(), err error) {
	if letGo, err = h.host.Runs.Lock(ctx, h.holder()); err != nil {
		return nil, err
	}
	if err := h.host.Runs.Sweep(ctx); err != nil {
		letGo()
		return nil, err
	}
	return letGo, nil
}

// waitForLock waits until no other process holds the lock, and then does the same as lock.
func (h *Host) waitForLock(ctx context.Context) (letGo func(), err error) {
	err = waits.For(ctx, "site "+h.Key, func() (held waits.Holder, err error) {
		letGo, err = h.lock(ctx)
		return waits.HolderOf(err)
	})
	return letGo, err
}

func (h *Host) holder() host.Holder { return host.NewHolder("root", h.command()) }

// siteByKey returns the site or twin with the given key. Only its names are set.
func siteByKey(key string) (*site.Site, error) {
	name, twin, ok := strings.Cut(key, ".")
	if !check.ValidLabel(name) || ok && !check.ValidLabel(twin) {
		return nil, problem.New(problem.Usage, "%q is not the key of a site", key)
	}
	return &site.Site{Name: name, Twin: twin}, nil
}

// hooksFor returns the hooks of a site that are notified of any of these events.
func hooksFor(s *site.Site, events ...string) []site.Hook {
	return slices.DeleteFunc(slices.Clone(s.Hooks), func(k site.Hook) bool {
		return !slices.ContainsFunc(k.On, func(event string) bool { return slices.Contains(events, event) })
	})
}

// notify notifies the hooks in the plan of what this host has done.
func (h *Host) notify(ctx context.Context, e hook.Event) error {
	s, err := siteByKey(h.Key)
	if err != nil {
		return err
	}
	s.Hooks = h.plan.Hooks
	e.Who = "root"
	return Notify(ctx, h.Machine, h.Dirs, s, e)
}

// Notify notifies the hooks of a site of what was done on this machine.
func Notify(ctx context.Context, m here.Machine, dirs host.Dirs, s *site.Site, e hook.Event) error {
	e.Time = time.Now()
	some, err := hook.Enqueue(dirs, s, e)
	if err == nil && some {
		err = m.Later(ctx, schedule.Job{Name: "hooks-" + s.Key(), Args: []string{"hook", s.Key()}})
	}
	if err != nil {
		err = problem.New(problem.Failed, "the hooks of site %s cannot be notified of %s", s.Name, e.Event).Because(err)
	}
	return err
}

// runSteps carries out the steps and keeps the journal.
func (h *Host) runSteps(ctx context.Context, steps []*plan.Step) error {
	return h.journal(ctx, h.host, func(note func(journal.Entry)) (string, error) {
		result := apply.Run(ctx, &plan.Plan{Site: h.Key, Steps: steps}, map[string]apply.Worker{h.plan.Host: h.host.Runs},
			journalWatcher{note, h.Say}, max(8, 4*runtime.NumCPU()))
		var err error
		for _, f := range result.Failed {
			err = errors.Join(err, fmt.Errorf("%s: %s: %w", f.Step.Title(), f.Step.Kind.Verb(), f.Err))
		}
		if err == nil && len(result.Skipped) > 0 {
			err = context.Cause(ctx)
		}
		if err == nil {
			err = h.host.Runs.DiscardUndo(ctx, result.Done)
		}
		return "done", err
	})
}

// recordOn adds a record to the journal of a site on this host.
func (h *Host) recordOn(ctx context.Context, other apply.Host, what string) error {
	return h.journal(ctx, other, func(func(journal.Entry)) (string, error) { return what, nil })
}

// journal records in the journal that do begins, and how it ends.
func (h *Host) journal(ctx context.Context, of apply.Host, do func(note func(journal.Entry)) (string, error)) error {
	book, err := of.Runs.OpenJournal(ctx)
	if err != nil {
		return err
	}
	defer book.Close() //nolint:errcheck // every entry has been written by then
	began := time.Now()
	run := fmt.Sprintf("%x", began.UnixNano())
	note := func(e journal.Entry) {
		e.Time, e.Run = time.Now(), run
		_ = book.Add(e) // a journal that cannot be written does not stop the work
	}
	note(journal.Entry{Kind: "begin", Who: "root", Command: h.command()})
	result, err := do(note)
	if err != nil {
		result = err.Error()
	}
	note(journal.Entry{Kind: "end", Result: result, Seconds: time.Since(began).Seconds()})
	return err
}

// journalWatcher records the steps in the journal.
type journalWatcher struct {
	note func(journal.Entry)
	say  func(error)
}

func (journalWatcher) Begin(*plan.Step)          {}
func (journalWatcher) Detail(*plan.Step, string) {}
func (w journalWatcher) Waits(s *plan.Step, text string) {
	w.say(fmt.Errorf("%s: %s", s.Doing(), text))
}
func (w journalWatcher) End(s *plan.Step, err error) {
	e := journal.Entry{Kind: "step", Step: s.String(), Result: "done"}
	if err != nil {
		e.Result = err.Error()
	}
	w.note(e)
}

// hostSecrets has the secrets of a host that works on its own: the copies of generated secrets that it
// stores.
type hostSecrets struct {
	*secret.Keyring
	of *Host
}

// Value returns the host's copy of a secret.
func (s hostSecrets) Value(ctx context.Context, name string) (string, error) {
	stored, err := s.of.host.Secrets.Read(ctx, name)
	if err != nil {
		return "", problem.New(problem.Failed, "secret %s is not on this host", name).Because(err).
			Try("run %s on a machine that has it", s.of.manualCommand())
	}
	return stored.Plain()
}

// Text always returns an error, because texts with secrets are made from the site directory.
func (s hostSecrets) Text(_ context.Context, t spec.SecretText) ([]byte, error) {
	return nil, problem.New(problem.Failed, "%s of node %s contains secrets that are not on this host", t.Path,
		t.Node).Try("run %s on a machine with the site directory", s.of.manualCommand())
}

// encodeSteps returns the encoded steps, each with everything that is needed to carry it out.
func encodeSteps(h *apply.HostClient, steps []*plan.Step, live func() (*site.Site, error)) (all []json.RawMessage,
	err error) {
	for _, s := range steps {
		whole, err := h.Pack(s, live)
		if err != nil {
			return nil, err
		}
		text, err := plan.Encode(whole)
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, nil
}

// touchHelperDir updates the modification time of this program's directory if it was copied here as a
// helper. Otherwise the program would be removed after not being started for long (host/reach).
func touchHelperDir(dirs host.Dirs) {
	program, err := os.Executable()
	if dir := filepath.Dir(program); err == nil && filepath.Dir(dir) == filepath.Join(dirs.State, "helper") {
		_ = os.Chtimes(dir, time.Time{}, time.Now())
	}
}
