package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/control/register"
	"orrery/internal/control/releases"
)

func (a *app) releaseDiff() *cobra.Command {
	return &cobra.Command{
		Use: "diff A B [SELECTOR...]", Short: "How two releases differ, node by node", Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.Load()
			if err != nil {
				return err
			}
			var both [2][]releases.Contents
			for i := range both {
				number, err := register.ReleaseNumber(s, args[i])
				if err != nil {
					return err
				}
				if both[i], err = releases.Show(c.Context(), &a.Session, s, number, args[2:]); err != nil {
					return err
				}
			}
			var t told // once what differs in the same way on several nodes
			for _, d := range releases.Differences(both[0], both[1]) {
				t.add(d.Node, differenceText(&d))
			}
			t.print(a.out)
			return nil
		},
	}
}

func differenceText(d *releases.Difference) string {
	switch {
	case d.Added:
		return "  added\n"
	case d.Removed:
		return "  removed\n"
	case d.Same():
		return "  the same\n"
	}
	var b strings.Builder
	if d.Was != nil || d.Is != nil {
		fmt.Fprintf(&b, "  layers differ: %s, then %s\n", strings.Join(d.Was, " "), strings.Join(d.Is, " "))
	}
	for _, p := range d.Packages {
		fmt.Fprintf(&b, "  %s package %s: %s -> %s\n", p.Kind, p.Name, cmp.Or(p.Was, "none"), cmp.Or(p.Is, "none"))
	}
	return b.String()
}
