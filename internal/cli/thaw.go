package cli

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/control"
	"orrery/internal/engine"
	"orrery/internal/engine/all"
	"orrery/internal/image"
	"orrery/internal/problem"
)

func (a *app) thawVerb() *cobra.Command {
	return &cobra.Command{
		Use: "thaw ENGINE/SITE/ID/NAME...", Hidden: true, Args: cobra.MinimumNArgs(1),
		Short: "Wait until the process that froze these nodes has ended, and let them go on if it did not",
		RunE: func(c *cobra.Command, args []string) error {
			said, _ := io.ReadAll(a.in)
			if string(said) == control.AllGoOn {
				return nil
			}
			engines := all.Engines(a.Dirs, image.Open(a.Dirs.State))
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
