package services

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/service"
)

// A Moved is what moving an address did.
type Moved struct {
	Service string  `json:"service"`
	From    string  `json:"from"` // the node that had the address, or "" if none had
	To      string  `json:"to"`
	Seconds float64 `json:"seconds"` // until the other node had it, or 0 if it had it already
}

// moveTimeout is how long a node may take to get an address that all others give away. Half of it is how long
// the nodes remember that by themselves.
const moveTimeout = 20 * time.Second

// Move moves the address of a service to a node. All its other nodes give it away for a moment, which needs
// no restart and does not touch their other services.
func Move(ctx context.Context, c *control.Session, s *site.Site, name, to string) (*Moved, error) {
	v, err := find(s, name)
	if err != nil {
		return nil, err
	}
	if !v.Has(to) {
		return nil, problem.New(problem.Usage, "node %q is no node of service %s", problem.Truncate(to, 200), v.Name).
			Try("%s", problem.SuggestOr(to, v.Nodes, "its nodes are "+strings.Join(v.Nodes, ", ")))
	}
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return nil, err
	}
	moved := &Moved{Service: v.Name, To: to}
	if _, err := c.AskProduction(s, fmt.Sprintf("The address of service %s would move to node %s.", v.Name, to)); err != nil {
		return nil, err
	}
	err = c.RunLocked(ctx, s, f, func(j *control.JournalWriter) error {
		runners, err := runnersOf(ctx, c, s)
		if err != nil {
			return err
		}
		began := time.Now()
		if err := moveWith(ctx, runners, v, moved); err != nil || moved.From == to {
			return err
		}
		moved.Seconds = time.Since(began).Seconds()
		return j.Step(fmt.Sprintf("move service %s from %s to %s", v.Name, moved.From, to), "done", time.Since(began))
	})
	return moved, err
}

func moveWith(ctx context.Context, runners map[string]host.Runner, v *service.Service, moved *Moved) (err error) {
	now := ask(ctx, runners, v)
	moved.From = strings.Join(now.Holders, " ")
	if slices.Equal(now.Holders, []string{moved.To}) {
		return nil
	}
	target := now.Nodes[slices.Index(v.Nodes, moved.To)]
	if target.Error != "" || target.State != Backup && target.State != Master {
		return problem.New(problem.Failed, "node %s cannot take over service %s", moved.To, v.Name).Because(why(&now)).
			Try("orrery status --probe %s shows whether its roles are healthy", moved.To)
	}
	var others []string // the holder last, so that no third node takes over
	for _, n := range now.Nodes {
		if n.Node != moved.To && !n.Has && n.Error == "" {
			others = append(others, n.Node)
		}
	}
	for _, n := range now.Nodes {
		if n.Node != moved.To && n.Has {
			others = append(others, n.Node)
		}
	}
	defer func() {
		apart := context.WithoutCancel(ctx)
		for _, name := range others {
			err = errors.Join(err, tell(apart, runners[name], v, "rm -f /run/orrery-service-away/"+v.Name))
		}
		if err == nil {
			awaitReturn(ctx, runners, v, others)
		}
	}()
	for i, name := range others {
		if now.Nodes[slices.Index(v.Nodes, name)].Has && i > 0 {
			// keepalived asks once a second
			if err := host.Sleep(ctx, 2*time.Second); err != nil {
				return err
			}
		}
		if err := tell(ctx, runners[name], v, "mkdir -p /run/orrery-service-away && touch /run/orrery-service-away/"+v.Name); err != nil {
			return err
		}
	}
	for began := time.Now(); ; {
		if err := host.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
		now := ask(ctx, runners, v)
		if slices.Equal(now.Holders, []string{moved.To}) {
			return nil
		}
		if time.Since(began) > moveTimeout {
			return problem.New(problem.Failed, "node %s has not taken over service %s within %s", moved.To, v.Name, moveTimeout).
				Because(why(&now)).Try("orrery logs %s", moved.To)
		}
	}
}

// awaitReturn waits until the nodes that gave an address away could take it over again.
func awaitReturn(ctx context.Context, runners map[string]host.Runner, v *service.Service, nodes []string) {
	for began := time.Now(); time.Since(began) < moveTimeout; {
		now := ask(ctx, runners, v)
		if !slices.ContainsFunc(now.Nodes, func(n Node) bool { return n.State == Fault && slices.Contains(nodes, n.Node) }) ||
			host.Sleep(ctx, 200*time.Millisecond) != nil {
			return
		}
	}
}

// tell runs a script in a node.
func tell(ctx context.Context, in host.Runner, v *service.Service, script string) error {
	if in == nil {
		return problem.New(problem.Failed, "a node of service %s does not run", v.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return in.Run(ctx, host.Command{Args: []string{"sh", "-c", script}})
}
