// Package rehearse has the verbs that simulate the hosts of a site on this machine. They also
// simulate failures of these hosts.
package rehearse

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
		Short: "Play all hosts of a site on this machine, to try what befalls them",
		Long: `Plays all hosts of the site on this machine, each with its own disk, address, SSH server and control groups, and runs a command, or a shell, on
the one from which the site is steered: there, orrery works as it would on the hosts themselves. Nothing that is done there reaches this machine's sites or the hosts
that are played; all of it goes when the command ends.

The verbs below do to hosts what befalls hosts. They work in that shell, and in another terminal.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 && c.ArgsLenAtDash() != 0 {
				return problem.New(problem.Usage, "rehearse has no verb %q", args[0]).
					Try("a command comes after two dashes: orrery rehearse -- %s", args[0])
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
		hostCommand(call, "join", "Join a host to the others again, after cut", rehearsal.Host.Reconnect),
		hostCommand(call, "kill", "End all that runs on a host, as if it had lost its power; its disk stays",
			rehearsal.Host.Kill),
		hostCommand(call, "boot", "Start a host again, after kill; its nodes are not started", rehearsal.Host.Boot),
		hostCommand(call, "pause", "Let a host stand still", rehearsal.Host.Pause),
		hostCommand(call, "resume", "Let a host go on, after pause", rehearsal.Host.Resume))
	return c
}

// hostCommand returns a subcommand that changes a host.
func hostCommand(call *verb.Call, use, short string, do func(rehearsal.Host) error) *cobra.Command {
	return &cobra.Command{Use: use + " HOST", Short: short, Args: cobra.ExactArgs(1),
		RunE: onHost(call, func(h rehearsal.Host, _ []string) error { return do(h) })}
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
	c := &cobra.Command{Use: "cut HOST", Short: "Cut a host off from the others", Args: cobra.ExactArgs(1)}
	c.Flags().StringVar(&only, "only", "",
		"lose only what is sent `to` the host, or what comes from it, and tell nobody (default: its link is down)")
	c.RunE = onHost(call, func(h rehearsal.Host, _ []string) error {
		switch way := rehearsal.Direction(only); way {
		case "":
			return h.Disconnect(rehearsal.Both)
		case rehearsal.To, rehearsal.From:
			return h.Disconnect(way)
		}
		return problem.New(problem.Usage, "--only %s is none of the ways of a link", only).Try("--only to, or --only from")
	})
	return c
}

func slow(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use: "slow HOST SIZE", Short: `Bound the disk of a host to so much a second, such as "1MiB"; 0 ends that`,
		Args: cobra.ExactArgs(2),
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
		Use: "gaps -- COMMAND...", Short: "Run a command, and tell how long nodes did not answer those on other hosts meanwhile",
		Args: cobra.MinimumNArgs(1),
		Long: fmt.Sprintf(`Runs a command, and tells how long each address of a node answered nobody on other hosts meanwhile. Two nodes of each host ask all others every %s;
less than %s without an answer is no gap. A node that goes with its host asks no more, and counts no more.`,
			rehearsal.PingInterval, rehearsal.SilenceThreshold),
		RunE: withHosts(call, func(ctx context.Context, s *site.Site, all *rehearsal.Hosts, args []string) error {
			gaps, err := rehearsals.Gaps(all, s, func() error {
				return host.Local{}.Run(ctx, host.Command{Args: args, Stdin: call.In, Stdout: call.Err, Stderr: call.Err})
			})
			if gaps == nil {
				return err
			}
			return cmp.Or(printGaps(call.Out, gaps), screen.OnlyExitStatus(err))
		}),
	}
	return verb.WithJSON(c, "print JSON")
}

// printGaps prints how long nodes did not answer.
func printGaps(out io.Writer, gaps []rehearsal.Gap) error {
	return table.List(out, gaps, "NODE\tADDRESS\tGAPS\tLONGEST\tALL\tAT THE END", func(g rehearsal.Gap) []any {
		if g.Asked == 0 {
			return []any{g.Node, g.Address, "nobody on other hosts could tell", "", "", ""}
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
		Short: "Let nodes of a site on this host look at others, until there is nothing more to read",
		RunE: call.AsRoot(func(c *cobra.Command, args []string) error {
			return rehearsals.Witness(c.Context(), call.Session, args[0], call.In, call.Out)
		}),
	}
}

// seconds formats a duration.
func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond).String()
}
