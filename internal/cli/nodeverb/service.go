package nodeverb

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/table"
	"orrery/internal/cli/verb"
	"orrery/internal/control/services"
	"orrery/internal/observe/drill"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/sanitize"
)

// Service returns the command `orrery service`.
func Service(call *verb.Call) *cobra.Command {
	return verb.Group("service", "Show, move and test services whose address moves", serviceList(call),
		serviceMove(call), serviceTest(call))
}

func serviceList(call *verb.Call) *cobra.Command {
	return verb.WithJSON(&cobra.Command{
		Use:     "ls",
		Short:   "List the services, which node holds each, and the last drill",
		Example: "  orrery service ls",
		Long: `Asks the nodes of each service who has its address, and since when. More than
one holder, or none, is shown as such. Active services have the running nodes
that answer. The exit status is 11 if an address does not have exactly one
holder, or if a node of an active service does not run.

FLAPS is how often, in the last 24 hours, a node gave the address up to another
although it was healthy: one of them took over without need, or they did not
hear each other, as in drills that freeze or cut a node.`,
		Args: cobra.NoArgs,
		RunE: call.WithRunningHosts(func(ctx context.Context, s *site.Site, _ []string) error {
			all, err := services.List(ctx, call.Session, s)
			if err != nil {
				return err
			}
			now := time.Now()
			err = table.List(call.Out, all, "SERVICE\tADDRESS\tHOLDER\tSINCE\tOTHERS\tFLAPS\tLAST DRILL\tKIND\tNETWORK",
				func(v services.Service) []any {
					return []any{v.Name, v.Address, cmp.Or(strings.Join(v.Holders, " and "), "none"), since(v.Since),
						strings.Join(others(&v), ", "), flaps(&v), lastDrill(&v, now), cmp.Or(v.Kind, "moving"), v.Network}
				})
			for i := range all {
				if err == nil && !all[i].Healthy() {
					return problem.Status(problem.Unhealthy)
				}
			}
			return err
		}),
	}, "print JSON")
}

// since formats when a node got an address.
func since(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return table.Minute(t)
}

// others returns the nodes that do not have the address, and whether they could take it over.
func others(v *services.Service) (all []string) {
	for _, n := range v.Nodes {
		switch {
		case n.Has:
		case n.Error != "":
			all = append(all, n.Node+" ("+sanitize.Line(n.Error)+")")
		case n.State == services.Fault:
			all = append(all, n.Node+" (not healthy)")
		default:
			all = append(all, n.Node)
		}
	}
	return all
}

// flaps formats how often a service had two holders for a moment.
func flaps(v *services.Service) string {
	if v.Kind != "" {
		return "-"
	}
	return strconv.Itoa(v.Flaps)
}

// lastDrill formats the result of the last drill of a service for a cell.
func lastDrill(v *services.Service, now time.Time) string {
	r := v.Drill
	switch {
	case v.Kind != "":
		return "-"
	case r == nil:
		return "never"
	}
	return sanitize.Line(r.String()) + ", " + now.Sub(r.At).Round(time.Second).String() + " ago"
}

func serviceMove(call *verb.Call) *cobra.Command {
	to := ""
	c := &cobra.Command{
		Use:     "move NAME --to NODE",
		Short:   "Give the address of a service to another of its nodes",
		Example: "  orrery service move portal --to portalb",
		Long: `Makes all other nodes of the service give its address away for a moment, so that
the named node gets it. Nothing is restarted. The node must be healthy.`,
		Args: cobra.ExactArgs(1),
		RunE: call.WithRunningHosts(func(ctx context.Context, s *site.Site, args []string) error {
			if to == "" {
				return problem.New(problem.Usage, "no node given").Try("orrery service move %s --to NODE", args[0])
			}
			moved, err := services.Move(ctx, call.Session, s, args[0], to)
			if err != nil {
				return err
			}
			return reply.Answer(call.Out, moved, func() {
				if moved.From == moved.To {
					fmt.Fprintf(call.Out, "%s already holds %s: nothing was changed\n", moved.To, moved.Service)
					return
				}
				fmt.Fprintf(call.Out, "%s holds %s, %.1f s after it was asked (before: %s)\n", moved.To, moved.Service,
					moved.Seconds, cmp.Or(moved.From, "no node"))
			})
		}),
	}
	call.ProductionFlag(c)
	c.Flags().StringVar(&to, "to", "", "the `node` that gets the address")
	return verb.WithJSON(c, "print JSON")
}

func serviceTest(call *verb.Call) *cobra.Command {
	fault := drill.Kill
	c := &cobra.Command{
		Use:   "test NAME",
		Short: "Let the holder of a service fail, and measure the gap",
		Example: `  orrery service test portal
  orrery service test portal --fault freeze
  orrery service test portal --twin dev`,
		Long: `Does a fault to the node that holds the address of the service, and measures how
long a client on its network gets no answer (ping every 20 ms; gaps below
100 ms do not count), and which machines answer ARP for the address. It then
puts the node back, also when interrupted. The client is a container of the
holder's host that is no node of the service, or the host itself.

  stop    shut the node down, and start it again
  kill    kill all its processes, and start it again
  freeze  freeze all its processes for some seconds
  cut     take its link to the network down for some seconds

A site in production asks first. The result is in the journal, in "orrery
service ls" and in "orrery status". The exit status is 11 if no other node took
over, or if more than one machine answers at the end.`,
		Args: cobra.ExactArgs(1),
		RunE: call.WithRunningHosts(func(ctx context.Context, s *site.Site, args []string) error {
			result, err := services.Test(ctx, call.Session, s, args[0], fault)
			if err != nil {
				return err
			}
			err = reply.Answer(call.Out, result, func() { printDrill(call, result) })
			if err == nil && !result.Good() {
				return problem.Status(problem.Unhealthy)
			}
			return err
		}),
	}
	call.ProductionFlag(c)
	c.Flags().StringVar(&fault, "fault", fault, "what to do: stop, kill, freeze or `cut`")
	return verb.WithJSON(c, "print JSON")
}

// printDrill prints the result of a drill.
func printDrill(call *verb.Call, r *drill.Result) {
	fmt.Fprintln(call.Out, sanitize.Line(r.String()))
	fmt.Fprintf(call.Out, "asked by %s; another machine answered for the address after %.2f s\n",
		cmp.Or(r.Client, "the host"), r.Takeover)
	if r.Both > 0 {
		fmt.Fprintf(call.Out, "two machines answered for %.2f s\n", r.Both)
	}
	if r.Return > 0 {
		fmt.Fprintf(call.Out, "gap when %s came back: %.2f s\n", r.Holder, r.Return)
	}
}
