package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/apply"
	"orrery/internal/site"
)

func (a *app) startVerb() *cobra.Command {
	return a.stateVerb("start", "Start nodes that are there, as they are", "running", a.Start)
}

func (a *app) stopVerb() *cobra.Command {
	return a.stateVerb("stop", "Shut nodes down and keep all that is theirs", "stopped", a.Stop)
}

func (a *app) stateVerb(name, short, state string, set func(context.Context, *site.Site, []string) (*apply.Result, error)) *cobra.Command {
	c := &cobra.Command{
		Use:   name + " [SELECTOR...]",
		Short: short,
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.Load()
			if err != nil {
				return err
			}
			result, err := set(c.Context(), s, args)
			if err == nil && result == nil {
				fmt.Fprintf(a.out, "%s: all of them are %s.\n", s.Name, state)
			}
			return err
		},
	}
	a.productionFlag(c)
	return c
}
