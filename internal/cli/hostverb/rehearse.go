package hostverb

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/cli/screen"
	"orrery/internal/cli/table"
	"orrery/internal/cli/verb"
	"orrery/internal/control/rehearsals"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/rehearsal"
	"orrery/internal/site"
	"orrery/internal/strict"
)

// Rehearse returns the command `orrery rehearse`, whose subcommands cause failures.
func Rehearse(call *verb.Call) *cobra.Command {
	c := &cobra.Command{
		Use:   "rehearse [-- COMMAND...]",
		Short: "Simulate all hosts of a site on this host, to try out failures",
		Long: `Simulates all hosts of the site on this host, each with its own disk, address,
SSH server and control groups, and runs a command, or a shell, on the control
host. There, orrery works as it would on the real hosts. Nothing done there
reaches this host's sites or the real hosts; everything is removed when the
command ends.

The verbs below cause failures of hosts. They work in that shell, and in
another terminal.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 && c.ArgsLenAtDash() != 0 {
				return problem.New(problem.Usage, "rehearse has no verb %q", args[0]).
					Try("write -- before the command: orrery rehearse -- %s", args[0])
			}
			return nil
		},
		RunE: call.AsRoot(call.WithSite(func(ctx context.Context, s *site.Site, args []string) error {
			if len(args) == 0 {
				args = []string{"/bin/bash"}
			}
			return screen.OnlyExitStatus(rehearsals.Rehearse(ctx, call.Session, s,
				screen.Command(call.In, call.Out, call.Err, args)))
		})),
	}
	c.AddCommand(cut(call), gaps(call), slow(call),
		hostCommand(call, "join", "Connect a host to the others again, after cut", rehearsal.Host.Reconnect),
		hostCommand(call, "kill", "Stop all that runs on a host, like a power cut; its disk stays",
			rehearsal.Host.Kill),
		hostCommand(call, "boot", "Start a host again, after kill, without its nodes", rehearsal.Host.Boot),
		hostCommand(call, "pause", "Freeze a host", rehearsal.Host.Pause),
		hostCommand(call, "resume", "Thaw a host, after pause", rehearsal.Host.Resume))
	return c
}

// hostCommand returns a subcommand that changes a host.
func hostCommand(call *verb.Call, use, short string, do func(rehearsal.Host) error) *cobra.Command {
	return &cobra.Command{Use: use + " HOST", Short: short, Args: cobra.ExactArgs(1),
		Example: "  orrery rehearse " + use + " sv2",
		RunE:    onHost(call, func(h rehearsal.Host, _ []string) error { return do(h) })}
}

// onHost returns a function that calls do with the host named by the first argument.
func onHost(call *verb.Call, do func(h rehearsal.Host, args []string) error) func(*cobra.Command, []string) error {
	return withHosts(call, func(_ context.Context, _ *site.Site, all *rehearsal.Hosts, args []string) error {
		h, err := rehearsals.FindHost(all, args[0])
		if err != nil {
			return err
		}
		if err := do(h, args[1:]); err != nil {
			return problem.New(problem.Failed, "%v", err)
		}
		return nil
	})
}

// withHosts returns a function that calls do with the simulated hosts of the site.
func withHosts(call *verb.Call, do func(context.Context, *site.Site, *rehearsal.Hosts,
	[]string) error) func(*cobra.Command, []string) error {
	return call.AsRoot(call.WithSite(func(ctx context.Context, s *site.Site, args []string) error {
		all, err := rehearsals.Current(call.Session, s)
		if err != nil {
			return err
		}
		defer all.Close() //nolint:errcheck // others keep them up
		return do(ctx, s, all, args)
	}))
}

func cut(call *verb.Call) *cobra.Command {
	only := ""
	c := &cobra.Command{Use: "cut HOST", Short: "Disconnect a host from the others",
		Example: "  orrery rehearse cut sv2",
		Args:    cobra.ExactArgs(1)}
	c.Flags().StringVar(&only, "only", "",
		"lose only packets `to` or from the host (default: link down)")
	c.RunE = onHost(call, func(h rehearsal.Host, _ []string) error {
		switch way := rehearsal.Direction(only); way {
		case "":
			return h.Disconnect(rehearsal.Both)
		case rehearsal.To, rehearsal.From:
			return h.Disconnect(way)
		}
		return problem.New(problem.Usage, "--only %s: not a direction", only).Try("use --only to or --only from")
	})
	return c
}

func slow(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use: "slow HOST SIZE", Short: `Limit a host's disk to SIZE per second, as 1MiB; 0: no limit`,
		Example: "  orrery rehearse slow sv2 1MiB",
		Args:    cobra.ExactArgs(2),
		RunE: onHost(call, func(h rehearsal.Host, args []string) error {
			var rate strict.Size
			if p := rate.Parse(args[0]); p != nil && args[0] != "0" {
				return p
			}
			return h.SetDiskRate(int64(rate))
		}),
	}
}

func gaps(call *verb.Call) *cobra.Command {
	c := &cobra.Command{
		Use: "gaps -- COMMAND...", Short: "Run a command, and report how long nodes did not answer",
		Example: "  orrery rehearse gaps -- orrery switch --release 701",
		Args:    cobra.MinimumNArgs(1),
		Long: fmt.Sprintf(`Runs a command, and reports how long each address of a node did not answer any
node on another host. Two nodes of each host ask all others every %s;
less than %s without an answer is no gap. A node that stops with its
host no longer asks, and no longer counts.`,
			rehearsal.PingInterval, rehearsal.OutageThreshold),
		RunE: withHosts(call, func(ctx context.Context, s *site.Site, all *rehearsal.Hosts, args []string) error {
			gaps, err := rehearsals.MeasureOutages(all, s, func() error {
				return host.Local{}.Run(ctx, host.Command{Args: args, Stdin: call.In, Stdout: call.Err, Stderr: call.Err})
			})
			if gaps == nil {
				return err
			}
			return cmp.Or(printOutages(call.Out, gaps), screen.OnlyExitStatus(err))
		}),
	}
	return verb.WithJSON(c, "print JSON")
}

// printOutages prints how long nodes did not answer.
func printOutages(out io.Writer, gaps []rehearsal.OutageSummary) error {
	return table.List(out, gaps, "NODE\tADDRESS\tGAPS\tLONGEST\tALL\tAT THE END", func(g rehearsal.OutageSummary) []any {
		if g.Asked == 0 {
			return []any{g.Node, g.Address, "no node on another host asked", "", "", ""}
		}
		end := "answers"
		if g.Silent {
			end = "silent"
		}
		return []any{g.Node, g.Address, g.Gaps, seconds(g.Longest), seconds(g.Whole), end}
	})
}

// Witness returns the verb by which a rehearsal makes nodes of a host observe other nodes.
func Witness(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use: rehearsals.WitnessVerb + " SITE", Hidden: true, Args: cobra.ExactArgs(1),
		Short: "Let this host's nodes observe others until the input ends",
		RunE: call.AsRoot(func(c *cobra.Command, args []string) error {
			return rehearsals.Witness(c.Context(), call.Session, args[0], call.In, call.Out)
		}),
	}
}

// seconds formats a duration.
func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond).String()
}
