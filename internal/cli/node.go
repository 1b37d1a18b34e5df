package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// runners gives the ways into all nodes that run. The site file may be ahead of what runs, so the ids are those on record.
func (a *app) runners(ctx context.Context, s *site.Site) (map[string]host.Runner, error) {
	h, err := a.here(s)
	if err != nil {
		return nil, err
	}
	all := map[string]host.Runner{}
	for _, e := range h.Engines {
		nodes, err := e.List(ctx, s.Key())
		if err != nil {
			return nil, err
		}
		for _, n := range nodes {
			if n.State == observe.Running && a.meant(&n) {
				all[n.Name] = a.wayInto(e, &n)
			}
		}
	}
	return all, nil
}

// wayInto gives the way into a node, which for those who are not root does not lead to where they would become that.
func (a *app) wayInto(e engine.Engine, n *observe.Node) host.Runner {
	if a.member != nil && n.Privileged {
		return barred{name: n.Name}
	}
	return e.Runner(engine.RefOf(&n.Node))
}

// live stands for the release that is live, whichever that is.
const live = -1

// meant reports whether an instance of a node is of the release that was asked for.
func (a *app) meant(n *observe.Node) bool {
	if a.release == live {
		return !n.Staged
	}
	return n.Release == a.release
}

// releaseFlag lets a verb work with nodes of a release that is not live.
func (a *app) releaseFlag(c *cobra.Command) {
	c.Flags().Var((*releaseValue)(&a.release), "release", "with the nodes of this release `number`, be they in quarantine (default: with those that are live)")
}

// A releaseValue is the value of --release. That it is not said has no number, and none is shown as the default.
type releaseValue int

func (r *releaseValue) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err == nil && n < 0 {
		err = problem.New(problem.Usage, "a release has no number below 0")
	}
	*r = releaseValue(n)
	return err
}

func (r *releaseValue) String() string {
	if *r < 0 {
		return ""
	}
	return strconv.Itoa(int(*r))
}

func (r *releaseValue) Type() string { return "int" }

// running gives a way into a node that runs.
func (a *app) running(ctx context.Context, s *site.Site, name string) (host.Runner, error) {
	all, err := a.runners(ctx, s)
	if err != nil {
		return nil, err
	}
	if in, ok := all[name]; ok {
		return in, nil
	}
	return nil, notRunning(name)
}

func notRunning(name string) error {
	return problem.New(problem.Failed, "node %s does not run", name).Try("orrery up %s", name)
}

// declared gives a node by name.
func declared(s *site.Site, name string) (*site.Node, error) {
	if n, ok := s.Node(name); ok {
		return n, nil
	}
	var names []string
	for _, n := range s.Nodes {
		names = append(names, n.Name)
	}
	p := problem.New(problem.Usage, "no node is called %q", name)
	if near := problem.Nearest(name, names); near != "" {
		return nil, p.Try("did you mean %s?", near)
	}
	return nil, p.Try("orrery query lists the nodes")
}
