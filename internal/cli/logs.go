package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"orrery/internal/cli/speech"
	"orrery/internal/control"
	"orrery/internal/control/nodes"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/selector"
)

func (a *app) logsVerb() *cobra.Command {
	var o logging
	c := &cobra.Command{
		Use:   "logs [SELECTOR] [UNIT...]",
		Short: "Show what roles and services printed on nodes",
		Long: `Prints what the roles printed when they were applied to a node, then the end of its systemd journal (only of the units that you name, if any). With
several nodes, each line is prefixed with the name of its node. --follow follows all of them at once, and goes on with the
release of a node that goes live. --layer DIGEST prints the build log of a
layer instead.`,
		Example: "  orrery logs portal nginx.service\n  orrery logs role=receptor -f",
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.Allowed(); err != nil {
				return err
			}
			if o.raw {
				a.raw()
			}
			if o.layer != "" {
				log, err := a.LayerLog(o.layer)
				return printLog(a.out, log, err, "layer "+o.layer)
			}
			if len(args) == 0 {
				return problem.New(problem.Usage, "of which node?").Try("orrery logs NODE")
			}
			return a.logs(c.Context(), args[0], args[1:], &o)
		},
	}
	c.Flags().StringVar(&o.layer, "layer", "", "print the building of the layer with this `digest`")
	c.Flags().BoolVarP(&o.follow, "follow", "f", false, "keep printing the journal as it is written")
	rawFlag(c, &o.raw)
	c.Flags().IntVarP(&o.lines, "lines", "n", 200, "lines of the journal")
	a.releaseFlag(c)
	return c
}

// logging says what of logs is printed.
type logging struct {
	layer       string
	follow, raw bool
	lines       int
}

func (a *app) logs(ctx context.Context, of string, units []string, o *logging) error {
	s, err := a.Load()
	if err != nil {
		return err
	}
	if _, ok := s.Node(of); ok {
		return a.logsOfOne(ctx, s, of, units, o)
	}
	chosen, err := selector.Select(s, of)
	if err != nil {
		return err
	}
	runners, err := a.Runners(ctx, s)
	if err != nil {
		return err
	}
	crowd := &nodes.Crowd{Nodes: chosen, Runners: runners, Parallel: 1} // one after the other
	if o.follow {
		crowd.Parallel = len(chosen)
	}
	endings, err := crowd.Speak(ctx, speech.Prefixed(a.out, a.err, chosen, false), func(ctx context.Context, i int, in host.Runner, to nodes.Speaker) error {
		return a.printLogs(ctx, s, chosen[i].Name, in, units, o, to.Out(), to.Errs())
	})
	switch {
	case o.follow && ctx.Err() != nil: // it has no other end
		return nil
	case err != nil || len(nodes.Failed(endings)) == 0:
		return err
	}
	return speech.Tally(a.err, endings)
}

func (a *app) logsOfOne(ctx context.Context, s *site.Site, name string, units []string, o *logging) error {
	runners, err := a.Runners(ctx, s)
	if err != nil {
		return err
	}
	in, ok := runners[name]
	if err := a.printLogs(ctx, s, name, in, units, o, a.out, a.err); err != nil || ok {
		return err
	}
	fmt.Fprintf(a.err, "orrery: %v\n", control.NotRunning(name))
	return nil
}

// printLogs prints what is known of a node: what its roles printed and, if there is a way into it, its journal.
func (a *app) printLogs(ctx context.Context, s *site.Site, name string, in host.Runner, units []string, o *logging, out, errs io.Writer) error {
	if !o.follow {
		log, err := a.NodeLog(s, name)
		if err := printLog(out, log, err, "node "+name); err != nil {
			return err
		}
	}
	if in == nil {
		return nil
	}
	command := []string{"journalctl", "--no-pager", "--lines", strconv.Itoa(o.lines)}
	if o.follow {
		command = append(command, "--follow")
	}
	for _, unit := range units {
		command = append(command, "--unit", unit)
	}
	fmt.Fprintf(out, "==> journal of node %s\n", name)
	if o.follow {
		return a.pursuitOf(s, name).follow(ctx, in, host.Command{Args: command, Stdout: out, Stderr: errs})
	}
	return in.Run(ctx, host.Command{Args: command, Stdout: out, Stderr: errs})
}

// printLog prints a log that was opened, and the file in which it is here.
func printLog(to io.Writer, log io.ReadCloser, err error, of string) error {
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(to, "==> %s: nothing was printed\n", of)
		return nil
	}
	if err != nil {
		return err
	}
	defer log.Close()
	if f, here := log.(*os.File); here {
		of += " (" + f.Name() + ")"
	}
	fmt.Fprintf(to, "==> %s\n", of)
	_, err = io.Copy(to, log)
	return err
}
