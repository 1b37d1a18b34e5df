package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/selector"
)

func (a *app) execVerb() *cobra.Command {
	var user string
	var raw bool
	parallel := 16
	c := &cobra.Command{
		Use:     "exec SELECTOR... -- COMMAND...",
		Short:   "Run a command on many nodes at once",
		Long:    `Runs a command on all nodes that the selectors mean, in parallel, with each line of output behind the name of its node. The exit status is 0 if it succeeded everywhere, otherwise 100 + the number of nodes on which it failed (at most 200).`,
		Example: `  orrery exec role=receptor -- systemctl is-system-running`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := needRoot(); err != nil {
				return err
			}
			dash := c.ArgsLenAtDash()
			if dash < 1 || dash == len(args) {
				return problem.New(problem.Usage, "what to run, and where?").Try("orrery exec SELECTOR -- COMMAND")
			}
			s, err := a.load()
			if err != nil {
				return err
			}
			nodes, err := selector.Select(s, args[:dash]...)
			if err != nil {
				return err
			}
			runners, err := a.runners(c.Context(), s)
			if err != nil {
				return err
			}
			if raw {
				a.raw()
			}
			failed := a.everywhere(c.Context(), nodes, runners, parallel, func(ctx context.Context, in host.Runner, out io.Writer) error {
				return in.Run(ctx, host.Command{Args: args[dash:], User: user, Stdout: out, Stderr: out})
			})
			fmt.Fprintf(a.err, "%d of %d nodes succeeded", len(nodes)-len(failed), len(nodes))
			if len(failed) == 0 {
				fmt.Fprintln(a.err, ".")
				return nil
			}
			fmt.Fprintf(a.err, "; failed: %s.\n", shortList(failed, 20))
			return problem.Status(problem.FailedNodes + min(len(failed), 100))
		},
	}
	c.Flags().StringVarP(&user, "user", "u", "", "as this `user` of the nodes")
	rawFlag(c, &raw)
	c.Flags().IntVar(&parallel, "parallel", parallel, "most nodes at once")
	a.releaseFlag(c)
	return c
}

// everywhere does something on many nodes at once and gives the names of those on which it failed, in order.
func (a *app) everywhere(ctx context.Context, nodes []*site.Node, runners map[string]host.Runner, parallel int, do func(context.Context, host.Runner, io.Writer) error) []string {
	width := 0
	for _, n := range nodes {
		width = max(width, len(n.Name))
	}
	var all sync.WaitGroup
	var out sync.Mutex
	places := make(chan struct{}, max(1, parallel))
	wrong := make([]bool, len(nodes))
	for i, n := range nodes {
		all.Add(1)
		places <- struct{}{}
		go func() {
			defer all.Done()
			defer func() { <-places }()
			prefix := fmt.Sprintf("%-*s | ", width, n.Name)
			w := host.NewLines(longestLine, func(line []byte) error {
				out.Lock()
				defer out.Unlock()
				_, err := fmt.Fprintf(a.out, "%s%s", prefix, line)
				return err
			})
			err := notRunning(n.Name)
			if in, ok := runners[n.Name]; ok {
				err = do(ctx, in, w)
			}
			_ = w.End() // whoever reads it has gone: the command has met that error, too
			if err != nil {
				wrong[i] = true
				out.Lock()
				fmt.Fprintf(a.err, "%s%s\n", prefix, brief(err))
				out.Unlock()
			}
		}()
	}
	all.Wait()
	var failed []string
	for i, n := range nodes {
		if wrong[i] {
			failed = append(failed, n.Name)
		}
	}
	return failed
}

// brief gives an error without the output of the command, which has been printed.
func brief(err error) string {
	var run *host.RunError
	if errors.As(err, &run) && run.Status > 0 {
		return fmt.Sprintf("exit status %d", run.Status)
	}
	return err.Error()
}

// longestLine is how much of a line without an end is kept for each node.
const longestLine = 256 << 10
