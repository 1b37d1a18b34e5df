package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/control/register"
	"orrery/internal/control/releases"
	"orrery/internal/phrase"
)

func (a *app) releaseShow() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "show NUMBER [SELECTOR...]", Short: "What a release consists of: layers and package versions, node by node", Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.Load()
			if err != nil {
				return err
			}
			number, err := register.ReleaseNumber(s, args[0])
			if err != nil {
				return err
			}
			all, err := releases.Show(c.Context(), &a.Session, s, number, args[1:])
			if err != nil {
				return err
			}
			if asJSON {
				return reply.JSON(a.out, all)
			}
			a.printContents(all)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, with all packages")
	return c
}

// printContents prints once what several nodes consist of.
func (a *app) printContents(all []releases.Contents) {
	var t told
	for _, n := range all {
		var b strings.Builder
		fmt.Fprintf(&b, "  roles %s\n  layers %s\n  content %s\n  %s, %s\n", strings.Join(n.Roles, ", "), strings.TrimSpace(n.Base+" "+n.Layer),
			strings.Join(n.Content, " "), phrase.Count(len(n.Packages), "Debian package"), phrase.Count(len(n.Python), "Python package"))
		for _, name := range slices.Sorted(maps.Keys(n.Python)) {
			fmt.Fprintf(&b, "    %s==%s\n", name, n.Python[name])
		}
		t.add(fmt.Sprintf("%s (%d)", n.Node, n.ID), b.String())
	}
	t.print(a.out)
}

// What is told of several nodes is said once.
type told struct {
	order []string
	nodes map[string][]string
}

func (t *told) add(node, text string) {
	if t.nodes == nil {
		t.nodes = map[string][]string{}
	}
	if t.nodes[text] == nil {
		t.order = append(t.order, text)
	}
	t.nodes[text] = append(t.nodes[text], node)
}

func (t *told) print(to io.Writer) {
	for _, text := range t.order {
		fmt.Fprintf(to, "%s:\n%s", phrase.List(t.nodes[text], 12), text)
	}
}
