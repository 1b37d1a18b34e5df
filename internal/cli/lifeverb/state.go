package lifeverb

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/apply"
	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/site"
)

// stateVerb returns a verb that brings nodes into a state.
func stateVerb(call *verb.Call, name, short, state string,
	set func(context.Context, *control.Session, *site.Site, []string) (*apply.Result, error)) *cobra.Command {
	c := &cobra.Command{
		Use:   name + " [SELECTOR...]",
		Short: short,
		RunE: call.WithRunning(func(ctx context.Context, s *site.Site, selectors []string) error {
			result, err := set(ctx, call.Session, s, selectors)
			if err == nil && result == nil {
				fmt.Fprintf(call.Out, "%s: nothing to do: all selected nodes are %s.\n", s.Key(), state)
			}
			return err
		}),
	}
	call.ProductionFlag(c)
	call.WithoutFlag(c)
	return c
}
