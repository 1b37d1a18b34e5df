package cli

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/cargo"
	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/selector"
)

func (a *app) cpVerb() *cobra.Command {
	o := copying{parallel: 4}
	c := &cobra.Command{
		Use:   "cp SOURCE... DESTINATION",
		Short: "Copy files and directories to, from and between nodes",
		Long: `Copies files, directories and links, with their modes and times; NODE:PATH names a path in a node. Files copied into a node belong to root there. Files copied to this host belong to you, without set-user-ID and set-group-ID. Devices and named pipes are skipped and reported. A destination that ends in / is a directory, and is created if it is missing.

SELECTOR:PATH copies to each of several nodes, or from each of them into a directory NODE below the destination. The exit status is 100 + the number of nodes that failed (at most 200).`,
		Example: "  orrery cp portal:/var/log/dpkg.log .\n  orrery cp table.csv db:/tmp/\n  orrery cp role=receptor:/var/log/daemon.log logs",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := control.NeedRoot(); err != nil {
				return err
			}
			s, err := a.Load()
			if err != nil {
				return err
			}
			return a.copy(c.Context(), s, args[:len(args)-1], args[len(args)-1], &o)
		},
	}
	f := c.Flags()
	f.IntVar(&o.parallel, "parallel", o.parallel, "how many nodes at once, at most")
	f.DurationVar(&o.timeout, "timeout", 0, "give up on a node after this time (default: never)")
	f.BoolVar(&o.json, "json", false, "print how it ended with each node, as a list in JSON")
	a.releaseFlag(c)
	return c
}

// copying says how is copied.
type copying struct {
	parallel int
	timeout  time.Duration
	json     bool
}

// A spot is what an argument names: a path on this host, in a node, or in each of several.
type spot struct {
	nodes []*site.Node // none: this host
	many  bool         // by a selector and not by name, were it only one
	path  string
}

func (a *app) spot(s *site.Site, arg string) (spot, error) {
	name, at, inNode := strings.Cut(arg, ":")
	if !inNode || strings.Contains(name, "/") {
		absolute, err := filepath.Abs(arg)
		if strings.HasSuffix(arg, "/") {
			absolute += "/"
		}
		return spot{path: absolute}, err
	}
	if !strings.HasPrefix(at, "/") {
		at = "/root/" + at
	}
	if n, ok := s.Node(name); ok {
		return spot{nodes: []*site.Node{n}, path: at}, nil
	}
	nodes, err := selector.Select(s, name)
	return spot{nodes: nodes, many: true, path: at}, err
}

// in gives the place of a spot in one of its nodes.
func (p spot) in(c *crowd, node string) cargo.Place {
	if p.nodes == nil {
		return cargo.Place{Path: p.path}
	}
	if !p.many {
		node = p.nodes[0].Name
	}
	return cargo.Place{In: c.in(node), Path: p.path}
}

func (a *app) copy(ctx context.Context, s *site.Site, sources []string, destination string, o *copying) error {
	to, err := a.spot(s, destination)
	if err != nil {
		return err
	}
	all := []spot{to}
	for _, source := range sources {
		from, err := a.spot(s, source)
		if err != nil {
			return err
		}
		all = append(all, from)
	}
	c, err := a.crowdOf(ctx, s, all)
	if err != nil {
		return err
	}
	c.parallel, c.timeout = o.parallel, o.timeout
	show := newMeter(a.err, "copied")
	defer show.Close()
	if c.nodes == nil || !o.json && !manySpots(all) {
		return c.within(ctx, func(ctx context.Context) error { return copyOne(ctx, c, all[1:], to, "", show.Add) })
	}
	var list speech = newPrefixed(a.out, a.err, c.nodes, false)
	if o.json {
		list = &reported{to: jsonTo(a.out)}
	}
	endings, err := c.speak(ctx, list, func(ctx context.Context, i int, _ host.Runner, _ speaker) error {
		return copyOne(ctx, c, all[1:], to, c.nodes[i].Name, show.Add)
	})
	if err != nil {
		return err
	}
	return a.tally(endings)
}

// copyOne copies what concerns one of the nodes of a crowd. What comes from each of several has a directory of its own.
func copyOne(ctx context.Context, c *crowd, sources []spot, to spot, node string, moved func(int64)) error {
	for _, from := range sources {
		at, in, several := to.in(c, node), from.in(c, node), len(sources) > 1
		if from.many {
			at.Path, several = path.Join(at.Path, node)+"/", true
		}
		in.Moved = moved
		if err := cargo.Transfer(ctx, in, at, several); err != nil {
			return err
		}
	}
	return nil
}

func manySpots(all []spot) bool { return slices.ContainsFunc(all, func(p spot) bool { return p.many }) }

// crowdOf gives the nodes with each of which something is to be done: those of the only selector or, if there is none, one.
func (a *app) crowdOf(ctx context.Context, s *site.Site, all []spot) (*crowd, error) {
	c := &crowd{}
	for i, p := range all {
		switch {
		case p.nodes == nil:
		case p.many && i > 0 && all[0].many:
			return nil, problem.New(problem.Usage, "from several nodes to several is more than one copy says").Try("name one node, or a directory of this host")
		case p.many || c.nodes == nil:
			if c.nodes != nil && manySpots(all[:i]) && !slices.Equal(c.nodes, p.nodes) {
				return nil, problem.New(problem.Usage, "two selectors mean different nodes").Try("copy from one after the other")
			}
			c.nodes = p.nodes
		}
	}
	if c.nodes == nil {
		return c, nil // which is refused with words for that
	}
	var err error
	c.runners, err = a.Runners(ctx, s)
	return c, err
}
