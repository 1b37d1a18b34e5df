package unattended

import (
	"context"
	"errors"
	"slices"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control/hosts"
	"orrery/internal/journal/hook"
	"orrery/internal/site/event"
	"orrery/internal/volume"
)

// SaveMirrorPlans makes the hosts update mirrors as often as the site file says. If there are none,
// the hosts stop doing so. All hosts store all mirrors, so a node that moves to another host
// continues to be mirrored.
func SaveMirrorPlans(ctx context.Context, c *hosts.Connector, f *apply.Fleet, mirrors []volume.Mirror) error {
	p := apply.UnattendedPlan{Trigger: apply.TriggerMirror, Every: map[string]time.Duration{}}
	if len(mirrors) > 0 {
		p.Hooks = hooksFor(c.Site, event.MirrorFailed)
		of, err := hosts.Directories(c.Site, mirrors)
		if err != nil {
			return err
		}
		p.Of = slices.DeleteFunc(slices.Concat(of...), func(d apply.Directory) bool { return d.Every == 0 })
	}
	for _, d := range p.Of {
		p.Every[d.Mount.Volume] = d.Every
	}
	return savePlans(ctx, c, f, func(*apply.HostClient) apply.UnattendedPlan { return p })
}

type mirror struct{}

func (mirror) Name() string { return apply.TriggerMirror }

// Run updates the mirrors of a volume whose directories are on this host. If one fails, Run
// notifies the hooks.
func (mirror) Run(ctx context.Context, h *Host, part string) error {
	nodes, err := h.host.Nodes.List(ctx)
	if err != nil {
		return err
	}
	on := map[string]bool{}
	for _, n := range nodes {
		on[n.Name] = on[n.Name] || !n.Staged
	}
	seen := map[string]bool{}
	of := slices.DeleteFunc(h.plan.Of, func(d apply.Directory) bool {
		again := seen[d.Mirror]
		out := again || d.Mount.Volume != part || !on[d.Node]
		seen[d.Mirror] = again || !out
		return out
	})
	if len(of) == 0 {
		return nil // the nodes have moved to another host
	}
	var untold error
	err = h.host.Volumes.Mirror(ctx, of, apply.MirrorRun{By: h.holder()}, func(made volume.MirrorStatus) {
		if made.Problem == "" {
			h.Tell("%s", made)
		} else {
			e := hook.Event{Event: event.MirrorFailed, Result: "failed", Why: made.Problem, Volume: made.Volume, Node: made.Node}
			untold = errors.Join(untold, h.notify(ctx, e))
		}
	})
	return errors.Join(err, untold)
}
