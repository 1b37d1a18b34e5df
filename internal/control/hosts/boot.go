package hosts

import (
	"context"
	"slices"
	"sync"

	"orrery/internal/apply"
	"orrery/internal/control/register"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/plan"
	"orrery/internal/plan/boot"
	"orrery/internal/problem"
	"orrery/internal/secret"
	"orrery/internal/site"
)

// SaveBootPlans has each host store what it does after a reboot, from what look sees on the hosts. If this machine is the only one, it brings the site up as
// its directory says.
func (c *Call) SaveBootPlans(ctx context.Context, f *apply.Fleet, look func(context.Context) ([]observe.Host, error)) error {
	if c.alone() {
		return (&apply.UnattendedPlan{Trigger: apply.AtBoot}).Write(c.Dirs, c.Site.Key()) // there is one from when it was not
	}
	seen, err := look(ctx)
	if err != nil {
		return err
	}
	p := boot.Plan(c.Site, seen)
	live := sync.OnceValues(func() (*site.Site, error) { return f.Released(c.Site, seen) }) // which all have now
	return f.Each(func(i int, h *apply.Steered) error {
		steps := slices.DeleteFunc(apply.StepsOn(p, h.Name), func(s *plan.Step) bool {
			if s.Kind != plan.CheckNode {
				return false
			}
			wanted, _, err := h.Wanted(s.Node)
			return err != nil || wanted == nil // it is not declared any more: it starts as it is, and nobody knows its checks
		})
		b := apply.UnattendedPlan{Trigger: apply.AtBoot, Host: h.Name}
		if b.Steps, err = encoded(h, steps, live); err != nil || b.Digest() == seen[i].Boot {
			return err
		}
		_, err = h.State.SavePlan(ctx, b)
		return err
	})
}

// Boots gives the keys of the sites of which this machine knows what it does after a reboot.
func Boots(dirs host.Dirs) []string {
	var keys []string
	for _, p := range apply.Unattended(dirs, "*") {
		if p.Trigger == apply.AtBoot {
			keys = append(keys, p.Key)
		}
	}
	return keys
}

// Resumed is what a host has started by itself.
type Resumed struct {
	Host    string
	Started []string // nodes
}

// String says what was started.
func (r *Resumed) String() string {
	if len(r.Started) == 0 {
		return "host " + r.Host + ": nothing to start"
	}
	return "host " + r.Host + ": started " + phrase.List(r.Started, 12)
}

// Resume brings up again what this host has of a site that is on several, by what it has on record, without the others and without the site directory. What it cannot know whether it may, it leaves.
func (a *Alone) Resume(ctx context.Context) (*Resumed, error) {
	b, err := apply.ReadUnattended(a.Dirs, a.Key, apply.AtBoot)
	if err != nil {
		return nil, problem.New(problem.Failed, "what this host does after a reboot cannot be read").At(apply.UnattendedPath(a.Dirs, a.Key, apply.AtBoot)).Because(err).Try("orrery up, from a machine with the site directory")
	}
	a.back.Host, a.command = b.Host, "orrery resume"
	a.host = a.Machine.Host(b.Host, a.Key, own{secret.NewKeyring(&site.Site{Name: a.Key}, a.Dirs), a})
	letGo, err := a.host.Runs.Lock(ctx, a.holder())
	if err != nil {
		return nil, err
	}
	defer letGo()
	if err := a.host.Runs.Sweep(ctx); err != nil {
		return nil, err
	}
	r, err := a.host.Releases.Read(ctx)
	if err != nil {
		return nil, err
	}
	if r.Switch != nil {
		return nil, problem.New(problem.HalfWay, "a switch to release %s was interrupted, and which release is live is not for one host to say; its nodes were not started", register.ReleaseNames(r.Switch.To)).At(a.Key).
			Try("orrery up, from a machine with the site directory, brings the set to one release")
	}
	seen, err := a.host.State.Observe(ctx, nil)
	if err != nil {
		return nil, err
	}
	steps, err := apply.Decoded(b.Steps)
	if err != nil {
		return nil, err
	}
	todo, others := boot.Now(steps, &seen)
	made := &Resumed{Host: b.Host}
	for _, s := range todo {
		if s.Kind == plan.StartNode {
			made.Started = append(made.Started, s.Subject)
		}
	}
	if len(todo) > 0 {
		if err := a.do(ctx, todo); err != nil {
			return made, err
		}
	}
	if len(others) > 0 {
		return made, problem.New(problem.Left, "not started, because they are not as they were when the site was last changed from a machine that steers: %s", phrase.List(others, 12)).At(a.Key).
			Try("orrery up, from a machine with the site directory")
	}
	return made, nil
}
