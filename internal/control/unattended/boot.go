package unattended

import (
	"context"
	"slices"
	"sync"

	"orrery/internal/apply"
	"orrery/internal/control/hosts"
	"orrery/internal/control/register"
	"orrery/internal/observe"
	"orrery/internal/plan"
	starting "orrery/internal/plan/boot"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// SaveBootPlans makes each host store the plan that it carries out after a reboot. The plans are
// made from what look observes on the hosts. If this machine is the only host, it brings the site
// up from its directory instead.
func SaveBootPlans(ctx context.Context, c *hosts.Connector, f *apply.Fleet,
	look func(context.Context) ([]observe.Host, error)) error {
	if c.BootsWholeSite() {
		// removes the plan of the time when the site had other hosts
		return (&apply.UnattendedPlan{Trigger: apply.TriggerBoot}).Write(c.Dirs, c.Site.Key())
	}
	seen, err := look(ctx)
	if err != nil {
		return err
	}
	p := starting.Plan(c.Site, seen)
	// the same release on all hosts by now
	live := sync.OnceValues(func() (*site.Site, error) { return f.Views().Released(c.Site, seen) })
	return f.ForEach(func(i int, h *apply.HostClient) error {
		steps := slices.DeleteFunc(apply.StepsOn(p, h.Name), func(s *plan.Step) bool {
			if s.Kind != plan.CheckNode {
				return false
			}
			wanted, _, err := h.Wanted(s.Node)
			// a node that is no longer declared starts as it is, without checks, because its checks
			// are unknown
			return err != nil || wanted == nil
		})
		b := apply.UnattendedPlan{Trigger: apply.TriggerBoot, Host: h.Name}
		if b.Steps, err = encodeSteps(h, steps, live); err != nil || b.Digest() == seen[i].Boot {
			return err
		}
		_, err = h.State.SavePlan(ctx, b)
		return err
	})
}

type boot struct{}

func (boot) Name() string { return apply.TriggerBoot }

// Run starts the nodes that this host has of a site with several hosts. It does not start a node if
// it cannot know whether it may.
func (boot) Run(ctx context.Context, h *Host, _ string) error {
	letGo, err := h.lock(ctx)
	if err != nil {
		return err
	}
	defer letGo()
	r, err := h.host.Releases.Read(ctx)
	if err != nil {
		return err
	}
	if r.Switch != nil {
		return problem.New(problem.HalfWay,
			"a switch to release %s was interrupted, and one host cannot decide which release is live; its nodes were not started",
			register.ReleaseNames(r.Switch.To)).At(h.Key).
			Try("run orrery up on a machine with the site directory: it brings the set to one release")
	}
	seen, err := h.host.State.Observe(ctx, nil)
	if err != nil {
		return err
	}
	steps, err := apply.DecodeSteps(h.plan.Steps)
	if err != nil {
		return err
	}
	todo, others := starting.ValidSteps(steps, &seen)
	var started []string
	for _, s := range todo {
		if s.Kind == plan.StartNode {
			started = append(started, s.Subject)
		}
	}
	if len(todo) > 0 {
		err = h.runSteps(ctx, todo)
	}
	if len(started) > 0 {
		h.Tell("host %s: started %s", h.plan.Host, humanize.List(started, 12))
	} else {
		h.Tell("host %s: nothing to start", h.plan.Host)
	}
	if err == nil && len(others) > 0 {
		return problem.New(problem.Left,
			"not started, because they have changed since a control host last changed the site: %s",
			humanize.List(others, 12)).At(h.Key).
			Try("run orrery up on a machine with the site directory")
	}
	return err
}
