package nodes

import (
	"context"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// ExecOptions say what to run, and how.
type ExecOptions struct {
	Command  []string
	User     string
	Stdin    io.Reader
	Parallel int           // maximum number of nodes at once
	Fixed    bool          // keep to Parallel even if all nodes read the same input
	Timeout  time.Duration // for each node, or 0 for none
}

// Exec runs a command on the selected nodes and displays what they print. It returns the result for
// each node.
func Exec(ctx context.Context, c *control.Session, s *site.Site, selectors []string, o ExecOptions,
	show func([]*site.Node) Output) ([]Result, error) {
	if err := c.CheckAllowedOn(s); err != nil {
		return nil, err
	}
	crowd, err := NewGroup(ctx, c, s, selectors, o.Parallel)
	if err != nil {
		return nil, err
	}
	crowd.Timeout = o.Timeout
	input, err := crowd.inputs(o.Stdin, o.Fixed)
	if err != nil {
		return nil, err
	}
	var endings []Result
	failed := control.JournalIfMember(c, s, func() (err error) {
		endings, err = crowd.RunShown(ctx, show(crowd.Nodes),
			func(ctx context.Context, i int, in host.Runner, to NodeOutput) error {
				defer input.close(i)
				return in.Run(ctx, host.Command{Args: o.Command, User: o.User, Stdin: input.of(i), Stdout: to.Out(),
					Stderr: to.Errs()})
			})
		if err == nil {
			err = ExitStatus(endings)
		}
		return err
	})
	return endings, failed
}

// ExitStatus returns the exit status of work on many nodes, or nil if it succeeded on all of them.
func ExitStatus(endings []Result) error {
	if n := len(Failed(endings)); n > 0 {
		return problem.Status(problem.FailedNodes + min(n, 100))
	}
	return nil
}

// inputs are what the nodes read: nothing, a stream itself, or copies of it.
type inputs struct {
	only   io.Reader
	copies []*io.PipeReader
}

// inputs distributes a stream to the nodes. Several nodes must then all run at once. A terminal is
// not passed on, because the nodes would consume what the user types for the shell.
func (c *Group) inputs(from io.Reader, fixed bool) (*inputs, error) {
	n := len(c.Nodes)
	switch {
	case from == nil || host.IsTerminal(from) || isNull(from):
		return &inputs{}, nil
	case n == 1:
		return &inputs{only: from}, nil
	case fixed && c.Parallel < n:
		return nil, problem.New(problem.Usage,
			"standard input goes to %d nodes at once, but --parallel allows only %d", n, c.Parallel).
			Try("omit --parallel, or use < /dev/null")
	}
	c.Parallel = max(c.Parallel, n)
	return &inputs{copies: host.Tee(from, n)}, nil
}

func (p *inputs) of(i int) io.Reader {
	if p.copies != nil {
		return p.copies[i]
	}
	return p.only
}

// close ends the input of a node, so that other nodes do not wait for it.
func (p *inputs) close(i int) {
	if p.copies != nil {
		_ = p.copies[i].Close() // it never fails
	}
}

// isNull reports whether a stream is /dev/null, as it is when there is no input.
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
