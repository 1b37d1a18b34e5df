package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/apply/local"
	"orrery/internal/control"
	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// contents are what a node of a release consists of.
type contents struct {
	Node     string            `json:"node"`
	ID       int               `json:"id"`
	Base     string            `json:"base"`
	Layer    string            `json:"layer,omitempty"`
	Content  []string          `json:"content"` // digests of what the layers hold
	Roles    []string          `json:"roles"`
	Packages map[string]string `json:"packages"` // Debian packages with their versions
	Python   map[string]string `json:"python"`   // Python packages with their versions
}

func (a *app) releaseShow() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "show NUMBER [SELECTOR...]", Short: "What a release consists of: layers and package versions, node by node", Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.Load()
			if err != nil {
				return err
			}
			all, err := a.contents(c.Context(), s, args[0], args[1:])
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(a.out, all)
			}
			a.printContents(all)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, with all packages")
	return c
}

// printContents prints once what several nodes consist of.
func (a *app) printContents(all []contents) {
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

// contents tells what the nodes of a release consist of, from the records of their layers.
func (a *app) contents(ctx context.Context, s *site.Site, text string, selectors []string) ([]contents, error) {
	number, err := control.ReleaseNumber(s, text)
	if err != nil {
		return nil, err
	}
	chosen, err := control.Choose(s, selectors)
	if err != nil {
		return nil, err
	}
	h, err := a.Here(s)
	if err != nil {
		return nil, err
	}
	hosts, err := a.Seen(ctx, h)
	if err != nil {
		return nil, err
	}
	var all []contents
	for i := range hosts[0].Nodes {
		n := &hosts[0].Nodes[i]
		if n.Release != number || chosen != nil && !chosen[n.Name] {
			continue
		}
		one, err := a.contentsOf(h, s, n)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil, problem.New(problem.Mistake, "no node of release %s is on this host", site.ReleaseName(number)).At(s.Key()).Try("orrery stage --release %d", number)
	}
	return all, nil
}

func (a *app) contentsOf(h *local.Host, s *site.Site, n *observe.Node) (contents, error) {
	one := contents{Node: n.Name, ID: n.ID, Base: n.Base, Layer: n.Layer, Packages: map[string]string{}, Python: map[string]string{}}
	if declared, ok := s.Node(n.Name); ok {
		one.Roles = declared.Roles
	}
	for _, digest := range slices.Backward(n.Layers()) {
		r, err := h.Store.Record(digest)
		if err != nil {
			return one, problem.New(problem.Failed, "node %s: what layer %s consists of is not known", n.Name, digest).Because(err).Try("orrery image verify")
		}
		one.Content = append(one.Content, r.Content)
		versions(one.Packages, r.Packages, "=")
		versions(one.Python, r.Python, "==")
	}
	return one, nil
}

func versions(to map[string]string, packages []string, sign string) {
	for _, p := range packages {
		name, version, _ := strings.Cut(p, sign)
		to[name] = version
	}
}
