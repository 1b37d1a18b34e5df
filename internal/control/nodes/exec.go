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

// ExecOptions say what is run, and how.
type ExecOptions struct {
	Command  []string
	User     string
	Stdin    io.Reader
	Parallel int           // how many nodes at once, at most
	Fixed    bool          // not more than that, also if all of them read the same
	Timeout  time.Duration // for each; 0: none
}

// Exec runs a command on the nodes that selectors mean, and shows what they print. It gives how
// that ended on each.
func Exec(ctx context.Context, c *control.Session, s *site.Site, selectors []string, o ExecOptions,
	show func([]*site.Node) Speech) ([]Ending, error) {
	if err := c.AllowedOn(s); err != nil {
		return nil, err
	}
	crowd, err := NewCrowd(ctx, c, s, selectors, o.Parallel)
	if err != nil {
		return nil, err
	}
	crowd.Timeout = o.Timeout
	input, err := crowd.inputs(o.Stdin, o.Fixed)
	if err != nil {
		return nil, err
	}
	var endings []Ending
	failed := control.Noted(c, s, func() (err error) {
		endings, err = crowd.Speak(ctx, show(crowd.Nodes),
			func(ctx context.Context, i int, in host.Runner, to Speaker) error {
				defer input.close(i)
				return in.Run(ctx, host.Command{Args: o.Command, User: o.User, Stdin: input.of(i), Stdout: to.Out(),
					Stderr: to.Errs()})
			})
		if err == nil {
			err = Verdict(endings)
		}
		return err
	})
	return endings, failed
}

// Verdict returns the exit status of what was done on many nodes, or nil if it has succeeded on all.
func Verdict(endings []Ending) error {
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

// inputs parts a stream among nodes, which then all run at once. A terminal is not passed: the
// nodes would read what is typed for the shell.
func (c *Crowd) inputs(from io.Reader, fixed bool) (*inputs, error) {
	n := len(c.Nodes)
	switch {
	case from == nil || host.IsTerminal(from) || isNull(from):
		return &inputs{}, nil
	case n == 1:
		return &inputs{only: from}, nil
	case fixed && c.Parallel < n:
		return nil, problem.New(problem.Usage,
			"standard input goes to %d nodes at once, and no more than %d are to run at once", n, c.Parallel).
			Try("leave --parallel out, or say < /dev/null")
	}
	c.Parallel = max(c.Parallel, n)
	return &inputs{copies: host.Copies(from, n)}, nil
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
