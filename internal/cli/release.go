package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"orrery/internal/apply/local"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/release"
	"orrery/internal/problem"
	"orrery/internal/site"
)

func (a *app) releaseVerb() *cobra.Command {
	c := &cobra.Command{
		Use: "release", Short: "Which releases there are, what they consist of and how they differ",
		Args: someVerb, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.releaseList(), a.releaseShow(), a.releaseDiff(), a.releasePrune())
	return c
}

// A releaseInfo is one line of `orrery release ls`.
type releaseInfo struct {
	Number     int      `json:"number"`
	Declared   bool     `json:"declared"`
	Live       []string `json:"live,omitempty"`       // nodes of which it is live
	Quarantine []string `json:"quarantine,omitempty"` // nodes that it has in quarantine
	Former     bool     `json:"former"`               // rollback returns to it
	Trial      bool     `json:"trial"`
	Confirmed  bool     `json:"confirmed"`
	releaseRecord
}

func (a *app) releaseList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "ls", Short: "List the releases", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := a.load()
			if err != nil {
				return err
			}
			all, err := a.releaseInfos(c.Context(), s)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(a.out, all)
			}
			t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "RELEASE\tSTATE\tLIVE\tQUARANTINE\tSTAGED\tBY\tNOTES")
			for _, i := range all {
				staged := "-"
				if !i.Staged.IsZero() {
					staged = i.Staged.Local().Format("2006-01-02 15:04")
				}
				fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\t%s\n", releaseName(i.Number), i.state(), len(i.Live), len(i.Quarantine), staged, cmp.Or(i.Who, "-"), i.Notes)
			}
			return t.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (i releaseInfo) state() string {
	switch {
	case i.Trial:
		return "on trial"
	case len(i.Live) > 0 && i.Confirmed:
		return "live, confirmed"
	case len(i.Live) > 0:
		return "live"
	case i.Former:
		return "former"
	case len(i.Quarantine) > 0:
		return "staged"
	case !i.Staged.IsZero():
		return "kept"
	}
	return "declared"
}

func (a *app) releaseInfos(ctx context.Context, s *site.Site) ([]releaseInfo, error) {
	h, err := a.here(s)
	if err != nil {
		return nil, err
	}
	hosts, err := a.seen(ctx, h)
	if err != nil {
		return nil, err
	}
	r := &hosts[0].Releases
	infos := map[int]*releaseInfo{}
	of := func(number int) *releaseInfo {
		if infos[number] == nil {
			infos[number] = &releaseInfo{Number: number, releaseRecord: a.readReleaseRecord(s.Key(), number)}
		}
		return infos[number]
	}
	for _, declared := range s.Releases {
		i := of(declared.Number)
		i.Declared, i.Notes = true, cmp.Or(i.Notes, declared.Notes)
	}
	for _, number := range r.Staged {
		of(number)
	}
	for j := range hosts[0].Nodes {
		if n := &hosts[0].Nodes[j]; n.Staged {
			of(n.Release).Quarantine = append(of(n.Release).Quarantine, n.Name)
		} else {
			of(n.Release).Live = append(of(n.Release).Live, n.Name)
		}
	}
	for _, number := range r.Former {
		of(number).Former = true
	}
	for _, number := range r.Confirmed {
		of(number).Confirmed = true
	}
	if r.Trial != nil {
		of(r.Trial.Release).Trial = true
	}
	var all []releaseInfo
	for _, number := range slices.Sorted(maps.Keys(infos)) {
		all = append(all, *infos[number])
	}
	return all, nil
}

// Contents are what a node of a release consists of.
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
			s, err := a.load()
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
			for _, n := range all {
				fmt.Fprintf(a.out, "%s (%d): roles %s\n  layers %s\n  content %s\n  %d Debian packages, %d Python packages\n", n.Node, n.ID, strings.Join(n.Roles, ", "),
					strings.TrimSpace(n.Base+" "+n.Layer), strings.Join(n.Content, " "), len(n.Packages), len(n.Python))
				for _, name := range slices.Sorted(maps.Keys(n.Python)) {
					fmt.Fprintf(a.out, "    %s==%s\n", name, n.Python[name])
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, with all packages")
	return c
}

// contents tells what the nodes of a release consist of, from the records of their layers.
func (a *app) contents(ctx context.Context, s *site.Site, text string, selectors []string) ([]contents, error) {
	number, err := releaseNumber(s, text)
	if err != nil {
		return nil, err
	}
	chosen, err := choose(s, selectors)
	if err != nil {
		return nil, err
	}
	h, err := a.here(s)
	if err != nil {
		return nil, err
	}
	hosts, err := a.seen(ctx, h)
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
		return nil, problem.New(problem.Mistake, "no node of release %s is on this host", releaseName(number)).At(s.Key()).Try("orrery stage --release %d", number)
	}
	return all, nil
}

func (a *app) contentsOf(h *local.Host, s *site.Site, n *observe.Node) (contents, error) {
	one := contents{Node: n.Name, ID: n.ID, Base: n.Base, Layer: n.Layer, Packages: map[string]string{}, Python: map[string]string{}}
	if declared, ok := s.Node(n.Name); ok {
		one.Roles = declared.Roles
	}
	for _, digest := range []string{n.Base, n.Layer} {
		if digest == "" {
			continue
		}
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

func (a *app) releaseDiff() *cobra.Command {
	return &cobra.Command{
		Use: "diff A B [SELECTOR...]", Short: "How two releases differ, node by node", Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.load()
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
	var order []string
	nodes := map[string][]string{}
	add := func(node, text string) {
		if nodes[text] == nil {
			order = append(order, text)
		}
		nodes[text] = append(nodes[text], node)
	}
	for _, n := range is {
		old, ok := before[n.Node]
		delete(before, n.Node)
		if !ok {
			add(n.Node, "  added\n")
			continue
		}
		add(n.Node, difference(old, n))
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		add(name, "  removed\n")
	}
	for _, text := range order {
		fmt.Fprintf(a.out, "%s:\n%s", shortList(nodes[text], 12), text)
	}
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

func (a *app) releasePrune() *cobra.Command {
	keep := 2
	var k consent
	c := &cobra.Command{
		Use: "prune", Short: "Remove old releases", Args: cobra.NoArgs,
		Long: `Removes all releases but those that are live, to which a rollback or the end of a trial returns, the one that was confirmed last, and
the newest of the others.`,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := a.load()
			if err != nil {
				return err
			}
			h, err := a.here(s)
			if err != nil {
				return err
			}
			if keep < 0 {
				return problem.New(problem.Usage, "--keep %d", keep).Try("0 or more")
			}
			j := &job{app: a, site: s, base: s, host: h, parallel: defaultParallel(),
				plan: func(hosts []observe.Host) (*plan.Plan, error) { return release.Prune(s, hosts, keep), nil },
				ask: func(p *plan.Plan) error {
					return a.askProduction(s, fmt.Sprintf("%s would be removed.", count(p.Counts()[plan.ForgetRelease], "release")), k)
				},
			}
			result, err := j.run(c.Context())
			if err != nil {
				return err
			}
			if result == nil {
				fmt.Fprintf(a.out, "%s: nothing to prune.\n", s.Key())
				return nil
			}
			var gone []string
			for _, step := range result.Done {
				if step.Kind == plan.ForgetRelease {
					gone = append(gone, strconv.Itoa(step.Release))
				}
			}
			fmt.Fprintf(a.out, "%s: %s of releases removed (%s).\n", s.Key(), count(done(result.Done, plan.DestroyNode), "node"), strings.Join(gone, ", "))
			return nil
		},
	}
	k.flags(c)
	c.Flags().IntVar(&keep, "keep", keep, "how many of those that need not be kept are kept all the same, the newest")
	return c
}
