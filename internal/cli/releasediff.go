package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func (a *app) releaseDiff() *cobra.Command {
	return &cobra.Command{
		Use: "diff A B [SELECTOR...]", Short: "How two releases differ, node by node", Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.Load()
			if err != nil {
				return err
			}
			was, err := a.contents(c.Context(), s, args[0], args[2:])
			if err != nil {
				return err
			}
			is, err := a.contents(c.Context(), s, args[1], args[2:])
			if err != nil {
				return err
			}
			a.printDifferences(was, is)
			return nil
		},
	}
}

// printDifferences prints once what differs in the same way on several nodes.
func (a *app) printDifferences(was, is []contents) {
	before := map[string]contents{}
	for _, n := range was {
		before[n.Node] = n
	}
	var t told
	for _, n := range is {
		old, ok := before[n.Node]
		delete(before, n.Node)
		if !ok {
			t.add(n.Node, "  added\n")
			continue
		}
		t.add(n.Node, difference(old, n))
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		t.add(name, "  removed\n")
	}
	t.print(a.out)
}

func difference(was, is contents) string {
	var b strings.Builder
	if !slices.Equal(was.Content, is.Content) {
		fmt.Fprintf(&b, "  layers differ: %s, then %s\n", strings.Join(was.Content, " "), strings.Join(is.Content, " "))
	}
	for _, kind := range []struct {
		name    string
		was, is map[string]string
	}{{"Debian", was.Packages, is.Packages}, {"Python", was.Python, is.Python}} {
		names := slices.Collect(maps.Keys(kind.was))
		names = slices.AppendSeq(names, maps.Keys(kind.is))
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if before, after := kind.was[name], kind.is[name]; before != after {
				fmt.Fprintf(&b, "  %s package %s: %s -> %s\n", kind.name, name, cmp.Or(before, "none"), cmp.Or(after, "none"))
			}
		}
	}
	if b.Len() == 0 {
		return "  the same\n"
	}
	return b.String()
}
