package cli

import (
	"context"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"orrery/internal/cli/screen"
	"orrery/internal/cli/speech"
	"orrery/internal/control/nodes"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/selector"
)

func (a *app) execVerb() *cobra.Command {
	var o execution
	c := &cobra.Command{
		Use:   "exec SELECTOR... -- COMMAND...",
		Short: "Run a command on many nodes at once",
		Long: `Runs a command on all selected nodes in parallel and prefixes each line of output with the name of its node. If standard input is not a terminal,
every node gets a copy of it; all nodes then run at once, at the pace of the slowest. The exit status is 0 if the command succeeded everywhere, otherwise
100 + the number of nodes on which it failed (at most 200). --json prints a list with the exit status of each node (-1: the command did not finish,
and "error" says why) and the first MiB of its output.`,
		Example: "  orrery exec role=receptor -- systemctl is-system-running\n  orrery exec role=db --timeout 30s -- psql -f - < schema.sql",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			dash := c.ArgsLenAtDash()
			if dash < 1 || dash == len(args) {
				return problem.New(problem.Usage, "what to run, and where?").Try("orrery exec SELECTOR -- COMMAND")
			}
			o.chosen = c.Flags().Changed("parallel")
			return a.exec(c.Context(), args[:dash], args[dash:], &o)
		},
	}
	f := c.Flags()
	f.StringVarP(&o.user, "user", "u", "", "run as this `user` in the nodes")
	rawFlag(c, &o.raw)
	f.IntVar(&o.parallel, "parallel", 16, "how many nodes at once, at most")
	f.DurationVar(&o.timeout, "timeout", 0, "stop the command on a node after this time (default: never)")
	f.BoolVar(&o.grouped, "group", false, "print the output of each node together when it has finished (at most 1 MiB of each)")
	f.BoolVar(&o.json, "json", false, "print a list in JSON")
	a.releaseFlag(c)
	return c
}

// An execution says how a command is run on many nodes.
type execution struct {
	user               string
	parallel           int
	chosen             bool // by the user
	timeout            time.Duration
	raw, grouped, json bool
}

func (a *app) exec(ctx context.Context, selectors, command []string, o *execution) error {
	if err := a.Allowed(); err != nil {
		return err
	}
	s, err := a.Load()
	if err != nil {
		return err
	}
	chosen, err := selector.Select(s, selectors...)
	if err != nil {
		return err
	}
	runners, err := a.Runners(ctx, s)
	if err != nil {
		return err
	}
	if o.raw {
		a.raw()
	}
	var show nodes.Speech = speech.Prefixed(a.out, a.err, chosen, o.grouped)
	if o.json {
		show = speech.Reported(a.out)
	}
	input, err := a.inputs(len(chosen), o)
	if err != nil {
		return err
	}
	crowd := &nodes.Crowd{Nodes: chosen, Runners: runners, Parallel: o.parallel, Timeout: o.timeout}
	return a.Noted(s, func() error {
		endings, err := crowd.Speak(ctx, show, func(ctx context.Context, i int, in host.Runner, to nodes.Speaker) error {
			defer input.close(i)
			return in.Run(ctx, host.Command{Args: command, User: o.user, Stdin: input.of(i), Stdout: to.Out(), Stderr: to.Errs()})
		})
		if err != nil {
			return err
		}
		return speech.Tally(a.err, endings)
	})
}

// inputs are what the nodes read: nothing, the standard input itself, or copies of it.
type inputs struct {
	only   io.Reader
	copies []*io.PipeReader
}

// inputs parts the standard input among nodes. A terminal is not passed: the nodes would read what is typed for the shell.
func (a *app) inputs(nodes int, o *execution) (*inputs, error) {
	switch {
	case a.in == nil || host.IsTerminal(a.in) || isNull(a.in):
		return &inputs{}, nil
	case nodes == 1:
		return &inputs{only: a.in}, nil
	case o.chosen && o.parallel < nodes:
		return nil, problem.New(problem.Usage, "standard input goes to %d nodes at once, and no more than %d are to run at once", nodes, o.parallel).
			Try("leave --parallel out, or say < /dev/null")
	}
	o.parallel = max(o.parallel, nodes)
	return &inputs{copies: host.Copies(a.in, nodes)}, nil
}

func (p *inputs) of(i int) io.Reader {
	if p.copies != nil {
		return p.copies[i]
	}
	return p.only
}

// close says that a node wants no more, and no others wait for it.
func (p *inputs) close(i int) {
	if p.copies != nil {
		_ = p.copies[i].Close() // it never fails
	}
}

// isNull reports whether a stream is /dev/null, as it is where nobody has anything to say.
func isNull(stream io.Reader) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Mode&syscall.S_IFMT == syscall.S_IFCHR && st.Rdev == unix.Mkdev(1, 3)
}

// raw lets what nodes print reach the terminal as it is.
func (a *app) raw() { a.out, a.err = screen.Unshown(a.out), screen.Unshown(a.err) }

func rawFlag(c *cobra.Command, raw *bool) {
	c.Flags().BoolVar(raw, "raw", false, "pass on terminal escape sequences, such as colours (default: show them as \\x1b)")
}
