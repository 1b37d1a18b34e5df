// Package nodeverb has the verbs that work with nodes: status, shell, exec, cp, forward, logs and
// others.
package nodeverb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/screen"
	"orrery/internal/cli/table"
	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/control/overdue"
	"orrery/internal/control/status"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// Status returns the command `orrery status`.
func Status(call *verb.Call) *cobra.Command {
	how := statusView{session: call.Session, Output: call.Output}
	c := &cobra.Command{
		Use:   "status [SELECTOR...]",
		Short: "Show the state of the nodes",
		Example: `  orrery status
  orrery status --probe role=portal
  orrery status --watch`,
		Long: `Shows every node with its addresses, state and health; nodes that are not as
declared come first. Health is the result of the last check, with its age.
Lines below the table warn of what is used to 90 % or more: the disk of a
host, the memory of a container, the disk of a volume.

--probe runs the checks now and looks for drift. On a terminal the columns are
cut to fit. With --watch on a terminal, scroll with the arrow keys, PgUp and
PgDn, and press q to quit.

The exit status is 11 if a node is not as declared.`,
		RunE: func(c *cobra.Command, args []string) error {
			how.selectors = args
			if how.watch {
				return how.repeat(c.Context(), call.In)
			}
			return how.show(c.Context(), screen.Width(call.Out))
		},
	}
	c.Flags().BoolVarP(&how.watch, "watch", "w", false, "update the table every second")
	c.Flags().BoolVar(&how.probe, "probe", false, "run the health checks now, and look for drift")
	c.Flags().BoolVar(&how.usage, "usage", false,
		"show CPU, memory and disk usage instead of addresses, roles")
	call.WithoutFlag(c)
	return verb.WithJSON(c, "print JSON")
}

// A statusView has the options of status, and the state of a watch.
type statusView struct {
	session *control.Session
	verb.Output
	selectors           []string
	watch, probe, usage bool
	before              map[int]host.Sample // by node ID, from the round before
}

// show prints the state of the nodes once.
func (v *statusView) show(ctx context.Context, width int) error {
	s, err := v.session.LoadRunning()
	if err != nil {
		return err
	}
	r, err := status.Read(ctx, v.session, s, v.selectors)
	if err != nil {
		return err
	}
	if v.probe {
		if err := r.Probe(ctx); err != nil {
			return err
		}
	}
	if v.usage {
		if v.before, err = r.Measure(ctx, v.before); err != nil {
			return err
		}
	}
	if r.Silent != nil {
		v.session.Trouble(s.Key(), r.Silent)
	}
	r.UnhealthyFirst()
	if err = table.Nodes(v.Out, r.Nodes, v.usage, width); err == nil {
		if !reply.IsJSON(v.Out) {
			table.Emulated(v.Out, r.Nodes)
		}
		err = v.routines(ctx, s, r)
	}
	if err == nil {
		err = overdue.ReportPendingOn(ctx, v.session, s, r.Fleet)
	}
	return cmp.Or(err, exitStatus(r.Nodes))
}

// routines prints how what the site file schedules went, and the last drills of services, unless only some
// nodes are shown.
func (v *statusView) routines(ctx context.Context, s *site.Site, r *status.Status) error {
	if len(v.selectors) > 0 {
		return nil
	}
	all, err := status.Routines(ctx, s, r.Fleet)
	if err != nil {
		v.session.Trouble(s.Key(), err)
	}
	drills, err := status.Drills(ctx, s, r.Fleet)
	if err != nil {
		v.session.Trouble(s.Key(), err)
	}
	return cmp.Or(table.Routines(v.Out, all, time.Now()), table.Drills(v.Out, drills, time.Now()))
}

func exitStatus(rows []status.Node) error {
	if slices.ContainsFunc(rows, func(r status.Node) bool { return !r.Quarantine && !r.IsGood() }) {
		return problem.Status(problem.Unhealthy)
	}
	return nil
}

// watchInterval is the interval of status --watch.
const watchInterval = time.Second

// repeat prints the state of the nodes repeatedly until it is interrupted. On a terminal it updates
// the screen, and otherwise it prints one table after the other.
func (v *statusView) repeat(ctx context.Context, in io.Reader) error {
	if terminal, ok := screen.TerminalOf(v.Out); ok {
		return screen.Watch(ctx, in, terminal, watchInterval,
			func(width int) ([]string, error) { return v.frame(ctx, width) })
	}
	for {
		err := v.show(ctx, 0)
		var status problem.Status
		if err != nil && !errors.As(err, &status) {
			return err
		}
		if r, ok := v.Out.(*reply.Reply); ok {
			r.Finish(err)
		} else {
			fmt.Fprintln(v.Out)
		}
		if host.Sleep(ctx, watchInterval) != nil {
			return nil
		}
	}
}

// frame returns the state of the nodes as lines, or an error to show instead.
func (v *statusView) frame(ctx context.Context, width int) ([]string, error) {
	text := screen.NewCanvas(v.Out)
	session, now := *v.session, *v
	now.session, now.Output = &session, verb.Output{Out: text, Err: text}
	session.Watcher = verb.Watcher{Output: now.Output}
	err := now.show(ctx, width)
	v.before = now.before
	var status problem.Status
	if errors.As(err, &status) {
		err = nil
	}
	if err != nil {
		verb.PrintError(text, err)
	}
	return text.Lines(), err
}
