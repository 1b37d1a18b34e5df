package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/screen"
	"orrery/internal/cli/table"
	"orrery/internal/control"
	"orrery/internal/control/overdue"
	"orrery/internal/control/status"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/visible"
)

func (a *app) statusVerb() *cobra.Command {
	var how survey
	c := &cobra.Command{
		Use:   "status [SELECTOR...]",
		Short: "Show how the nodes are",
		Long: `Shows every node with its addresses, state and health; nodes that are not as declared come first. Health is what the last check found, and how long
ago that was. --probe runs the checks now and looks for drift. On a terminal the columns are cut to fit.
With --watch on a terminal, scroll with the arrow keys, PgUp and PgDn, and press q to quit.
The exit status is 11 if a node is not as declared.`,
		RunE: func(c *cobra.Command, args []string) error {
			how.selectors = args
			if how.watch {
				return a.watchStatus(c.Context(), &how)
			}
			return a.survey(c.Context(), &how, screen.Width(a.out))
		},
	}
	c.Flags().BoolVarP(&how.watch, "watch", "w", false, "show it again every second")
	c.Flags().BoolVar(&how.probe, "probe", false, "run the health checks now, and look for drift")
	c.Flags().BoolVar(&how.usage, "usage", false, "show the processors, memory and disk that each node uses now, instead of addresses and roles")
	a.withoutFlag(c)
	return withJSON(c, "print JSON")
}

// A survey is what status is asked for.
type survey struct {
	selectors           []string
	watch, probe, usage bool
	before              map[int]host.Sample // by id, of the round before
}

// survey shows how the nodes are, once.
func (a *app) survey(ctx context.Context, how *survey, width int) error {
	s, err := a.Load()
	if err != nil {
		return err
	}
	r, err := status.Read(ctx, &a.Session, s, how.selectors)
	if err != nil {
		return err
	}
	if how.probe {
		if err := r.Probe(ctx); err != nil {
			return err
		}
	}
	if how.usage {
		if how.before, err = r.Measure(ctx, how.before); err != nil {
			return err
		}
	}
	if r.Silent != nil {
		a.Watcher.Tell(control.Event{Kind: control.Trouble, Site: s.Key(), Text: r.Silent.Error(), Err: r.Silent})
	}
	r.SickFirst()
	if err = a.show(r.Nodes, how.usage, width); err == nil {
		if !reply.Wanted(a.out) {
			table.Emulated(a.out, r.Nodes)
		}
		err = overdue.UnderWayOn(ctx, &a.Session, s, r.Fleet)
	}
	return cmp.Or(err, verdict(r.Nodes))
}

func (a *app) show(rows []status.Node, usage bool, width int) error {
	if reply.Wanted(a.out) {
		return reply.JSON(a.out, rows)
	}
	return table.Nodes(a.out, rows, usage, width)
}

// status shows how nodes are that have just been brought up.
func (a *app) status(ctx context.Context, s *site.Site, selectors []string) error {
	r, err := status.Read(ctx, &a.Session, s, selectors)
	if err != nil {
		return err
	}
	return a.show(r.Nodes, false, screen.Width(a.out))
}

func verdict(rows []status.Node) error {
	if slices.ContainsFunc(rows, func(r status.Node) bool { return !r.Quarantine && !r.Good() }) {
		return problem.Status(problem.Unhealthy)
	}
	return nil
}

// everySecond is how often status --watch looks.
const everySecond = time.Second

// watchStatus shows how the nodes are again and again, until it is interrupted: on a terminal in place, else one below the other.
func (a *app) watchStatus(ctx context.Context, how *survey) error {
	if terminal, ok := screen.Of(a.out); ok {
		return screen.Watch(ctx, a.in, terminal, everySecond, func(width int) ([]string, error) { return a.frame(ctx, how, width) })
	}
	for {
		err := a.survey(ctx, how, 0)
		var status problem.Status
		if err != nil && !errors.As(err, &status) {
			return err
		}
		if r, ok := a.out.(*reply.Reply); ok {
			r.Finish(err)
		} else {
			fmt.Fprintln(a.out)
		}
		if host.Pause(ctx, everySecond) != nil {
			return nil
		}
	}
}

// frame returns how the nodes are; what goes wrong is shown in its place.
func (a *app) frame(ctx context.Context, how *survey, width int) ([]string, error) {
	var text bytes.Buffer
	b := a.another()
	b.out, b.err = &text, &text
	err := b.survey(ctx, how, width)
	var status problem.Status
	if errors.As(err, &status) {
		err = nil
	}
	if err != nil {
		printError(&text, err)
	}
	return strings.Split(strings.TrimSuffix(visible.Text(text.String()), "\n"), "\n"), err
}
