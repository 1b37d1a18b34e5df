package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/engine"
	"orrery/internal/engine/all"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// guard starts a process that lets nodes go on if this one is killed while they stand still; nobody else might come for hours. It
// ends when it is let go.
func (a *app) guard(nodes ...*spec.Node) (letGo func(), err error) {
	args := []string{"thaw"}
	for _, n := range nodes {
		args = append(args, strings.Join([]string{n.Engine, n.Site, strconv.Itoa(n.ID), n.Name}, "/"))
	}
	cmd := host.Program(context.Background(), "/proc/self/exe", args...) // a terminal that is closed does not end it
	cmd.Env = append(os.Environ(), "ORRERY_STATE="+a.dirs.State, "ORRERY_RUN="+a.dirs.Run)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, problem.New(problem.Failed, "the process that would let nodes go on cannot be started").Because(err)
	}
	return func() {
		_, _ = io.WriteString(in, allGoOn)
		_ = in.Close()
		_ = cmd.Wait()
	}, nil
}

// allGoOn is what the guard reads if it has nothing to do.
const allGoOn = "done"

func (a *app) thawVerb() *cobra.Command {
	return &cobra.Command{
		Use: "thaw ENGINE/SITE/ID/NAME...", Hidden: true, Args: cobra.MinimumNArgs(1),
		Short: "Wait until the process that froze these nodes has ended, and let them go on if it did not",
		RunE: func(c *cobra.Command, args []string) error {
			said, _ := io.ReadAll(a.in)
			if string(said) == allGoOn {
				return nil
			}
			engines := all.Engines(a.dirs, image.Open(a.dirs.State))
			var errs error
			for _, arg := range args {
				part := strings.SplitN(arg, "/", 4)
				if len(part) < 4 {
					return problem.New(problem.Usage, "%q is no node", arg)
				}
				id, err := strconv.Atoi(part[2])
				freezer, ok := engines[part[0]].(engine.Freezer)
				if err != nil || !ok {
					return problem.New(problem.Usage, "%q is no node", arg)
				}
				errs = errors.Join(errs, freezer.Thaw(context.WithoutCancel(c.Context()), engine.Ref{Site: part[1], ID: id, Name: part[3]}))
			}
			return errs
		},
	}
}
