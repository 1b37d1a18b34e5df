package services

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/sites"
	"orrery/internal/observe"
	"orrery/internal/observe/drill"
	"orrery/internal/observe/routine"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/service"
)

// Test does a fault to the node that holds the address of a service, and measures how long a client on its
// network gets no answer. It puts the node back even if ctx ends.
func Test(ctx context.Context, c *control.Session, s *site.Site, name, fault string) (*drill.Result, error) {
	v, err := find(s, name)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(drill.Faults, fault) {
		return nil, problem.New(problem.Usage, "no fault is called %q", problem.Truncate(fault, 200)).
			Try("use --fault %s", strings.Join(drill.Faults, ", "))
	}
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return nil, err
	}
	if _, err := c.AskProduction(s, fmt.Sprintf("The node that holds service %s would fail (%s).", v.Name, fault)); err != nil {
		return nil, err
	}
	var result *drill.Result
	err = c.RunLocked(ctx, s, f, func(j *control.JournalWriter) error {
		result, err = run(ctx, c, s, f, v, fault)
		if err != nil || result == nil {
			return err
		}
		took := time.Duration(result.Gap * float64(time.Second))
		if err := j.Step("drill of service "+v.Name+": "+result.String(), "done", took); err != nil {
			return err
		}
		return record(ctx, f, *result)
	})
	if result != nil && result.Stopped {
		// also if the drill failed or was interrupted
		_, back := sites.Start(context.WithoutCancel(ctx), c.WaitingForLocks(), s, []string{result.Holder})
		err = errors.Join(err, back)
	}
	return result, err
}

// run does the drill on the host of the holder.
func run(ctx context.Context, c *control.Session, s *site.Site, f *apply.Fleet, v *service.Service, fault string) (
	*drill.Result, error) {
	runners, err := runnersOf(ctx, c, s)
	if err != nil {
		return nil, err
	}
	now := ask(ctx, runners, v)
	name, err := holder(&now)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(now.Nodes, func(n Node) bool { return n.Node != name && n.State == Backup && n.Error == "" }) {
		return nil, problem.New(problem.Failed, "no other node can take over service %s, so it would only be away", v.Name).
			Because(why(&now)).Try("orrery status --probe shows which nodes are not healthy")
	}
	lists, err := f.ListNodes(ctx, apply.InspectFull)
	if err != nil {
		return nil, err
	}
	for i, nodes := range lists {
		for k := range nodes {
			n := &nodes[k]
			if n.Name != name || n.Staged || n.State != observe.Running {
				continue
			}
			r := drill.Request{Service: v.Name, Address: v.Address, Network: v.Network, Fault: fault, Holder: &n.Node,
				Members: membersOf(s, v)}
			c.Notice(s.Key(), "%s of node %s, which holds service %s", fault, name, v.Name)
			result, err := f.All[i].Nodes.Drill(ctx, r)
			if err != nil && !result.Stopped {
				// a host that was interrupted may not say that it has stopped the node
				result = drill.Result{Holder: name, Stopped: fault == drill.Stop || fault == drill.Kill}
			}
			return &result, err
		}
	}
	return nil, problem.New(problem.Failed, "node %s does not run", name)
}

// membersOf returns the nodes of a service by their hardware addresses on its network.
func membersOf(s *site.Site, v *service.Service) map[string]string {
	all := map[string]string{}
	for _, name := range v.Nodes {
		all[site.MAC(s.Name, name, v.Network)] = name
	}
	return all
}

// record stores the result of a drill on all hosts.
func record(ctx context.Context, f *apply.Fleet, r drill.Result) error {
	return f.ForEach(func(_ int, h *apply.HostClient) error {
		return h.State.SaveRoutine(ctx, drill.RecordName(r.Service), routine.Record{Begun: r.At, Done: r.At,
			Made: drill.Format(r)})
	})
}
