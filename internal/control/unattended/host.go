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

	host apply.Host
	plan apply.UnattendedPlan

	// set if the site has no other host and its directory can be read
	call  *hosts.Call
	fleet *apply.Fleet // nil if the site directory is missing or cannot be read
}

// Run carries out the plan that the host has stored for a trigger, or one part of the plan.
func (h *Host) Run(ctx context.Context, trigger, part string) error {
	if err := h.Machine.Allowed(); err != nil {
		return err
	}
	if _, err := keyed(h.Key); err != nil {
		return err
	}
	t := find(trigger)
	if t == nil {
		return problem.New(problem.Usage, "%q is not the name of a trigger", trigger)
	}
	stayFresh(h.Dirs)
	ctx = waits.Telling(ctx, func(text string) { h.Say(errors.New(text)) })
	if err := h.read(trigger); err != nil {
		return err
	}
	h.host = h.Machine.Host(h.plan.Host, h.Key, own{secret.NewKeyring(&site.Site{Name: h.Key}, h.Dirs), h})
	if h.plan.Dir != "" {
		if err := h.load(ctx); err != nil {
			h.Say(err) // continue with what this host has stored
		}
	}
	return t.Run(ctx, h, part)
}

// load reads the site directory, like the control host. The directory has secrets that the host
// does not store, and what is needed to make a new plan.
func (h *Host) load(ctx context.Context) error {
	s, err := sitefile.Load(h.plan.Dir)
	if _, name, twin := strings.Cut(h.Key, "."); err == nil && twin {
		s, err = register.Register{Dirs: h.Dirs}.AsTwin(s, name, 0)
	}
	if err != nil {
		return err
	}
	if s.Key() != h.Key || len(hosts.Elsewhere(s)) > 0 {
		return problem.New(problem.Surprise, "site %s is another one now, or has other hosts", h.Key).At(h.plan.Dir).
			Try("%s", h.instead())
	}
	c := &hosts.Call{Machine: h.Machine, Dirs: h.Dirs, Site: s, Dir: h.plan.Dir, Links: &hosts.Links{},
		Notice: func(format string, args ...any) { h.Say(fmt.Errorf(format, args...)) }}
	f, _, err := c.Fleet(ctx)
	if err == nil {
		err = c.Releases(f).Learn(ctx, h.plan.Intent.To)
	}
	if err == nil {
		h.call, h.fleet, h.host = c, f, f.All[0].Host
	}
	return err
}

// read reads the stored plan. The control host may replace the plan at any time.
func (h *Host) read(trigger string) error {
	p, err := apply.ReadUnattended(h.Dirs, h.Key, trigger)
	if err == nil && p.Dir != "" && p.Intent == nil {
		err = errors.New("it does not say what is switched")
	}
	if err != nil {
		return problem.New(problem.Failed, "the plan of this host for site %s (%s) cannot be read", h.Key, trigger).
			At(apply.UnattendedPath(h.Dirs, h.Key, trigger)).Because(err).
			Try("orrery up, from a machine with the site directory")
	}
	h.plan = p
	return nil
}

// command returns the command line for locks and the journal.
func (h *Host) command() string { return "orrery host-run " + h.Key + " " + h.plan.Trigger }

// instead returns the command that does the same from a machine that has the secrets.
func (h *Host) instead() string {
	if h.plan.Trigger == apply.OnTrial {
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

// await waits until no other process holds the lock, and then does the same as lock.
func (h *Host) await(ctx context.Context) (letGo func(), err error) {
	err = waits.For(ctx, "site "+h.Key, func() (held waits.Held, err error) {
		letGo, err = h.lock(ctx)
		return waits.Locked(err)
	})
	return letGo, err
}

func (h *Host) holder() host.Holder { return host.NewHolder("root", h.command()) }

// keyed returns the site or twin with the given key. Only its names are set.
func keyed(key string) (*site.Site, error) {
	name, twin, ok := strings.Cut(key, ".")
	if !check.Label(name) || ok && !check.Label(twin) {
		return nil, problem.New(problem.Usage, "%q is not the key of a site", key)
	}
	return &site.Site{Name: name, Twin: twin}, nil
}

// hooksOn returns the hooks of a site that are notified of an event.
func hooksOn(s *site.Site, event string) []site.Hook {
	return slices.DeleteFunc(slices.Clone(s.Hooks), func(k site.Hook) bool { return !slices.Contains(k.On, event) })
}

// notify notifies the hooks in the plan of what this host has done.
func (h *Host) notify(ctx context.Context, e hook.Event) error {
	s, err := keyed(h.Key)
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
	some, err := hook.Post(dirs, s, e)
	if err == nil && some {
		err = m.Later(ctx, schedule.Job{Name: "hooks-" + s.Key(), Args: []string{"hook", s.Key()}})
	}
	if err != nil {
		err = problem.New(problem.Failed, "the hooks of site %s cannot be notified of %s", s.Name, e.Event).Because(err)
	}
	return err
}

// do carries out the steps and keeps the journal.
func (h *Host) do(ctx context.Context, steps []*plan.Step) error {
	return h.journal(ctx, h.host, func(note func(journal.Entry)) (string, error) {
		result := apply.Run(ctx, &plan.Plan{Site: h.Key, Steps: steps}, map[string]apply.Worker{h.plan.Host: h.host.Runs},
			steady{note, h.Say}, max(8, 4*runtime.NumCPU()))
		var err error
		for _, f := range result.Failed {
			err = errors.Join(err, fmt.Errorf("%s: %s: %w", f.Step.Title(), f.Step.Kind, f.Err))
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

// noteOn adds a record to the journal of a site on this host.
func (h *Host) noteOn(ctx context.Context, other apply.Host, what string) error {
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

// steady records the steps in the journal.
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

// own has the secrets of a host that works on its own: the copies of generated secrets that it
// stores.
type own struct {
	*secret.Keyring
	of *Host
}

// Value returns the host's copy of a secret.
func (s own) Value(ctx context.Context, name string) (string, error) {
	v, err := s.of.host.Secrets.Read(ctx, name)
	if err != nil {
		return "", problem.New(problem.Failed, "secret %s is not on this host", name).Because(err).
			Try("%s, from a machine that has it", s.of.instead())
	}
	return v, nil
}

// Text always returns an error, because texts with secrets are made from the site directory.
func (s own) Text(_ context.Context, t spec.SecretText) ([]byte, error) {
	return nil, problem.New(problem.Failed, "%s of node %s has secrets in it, which are not on this host", t.Path,
		t.Node).Try("%s, from a machine with the site directory", s.of.instead())
}

// encoded returns the encoded steps, each with everything that is needed to carry it out.
func encoded(h *apply.Steered, steps []*plan.Step, live func() (*site.Site, error)) (all []json.RawMessage, err error) {
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

// stayFresh updates the modification time of this program's directory if it was copied here as a
// helper. Otherwise the program would be removed after not being started for long (host/reach).
func stayFresh(dirs host.Dirs) {
	program, err := os.Executable()
	if dir := filepath.Dir(program); err == nil && filepath.Dir(dir) == filepath.Join(dirs.State, "helper") {
		_ = os.Chtimes(dir, time.Time{}, time.Now())
	}
}
