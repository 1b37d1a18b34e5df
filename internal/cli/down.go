package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"orrery/internal/apply/local"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/volume"
)

// consent is how a script says beforehand the name of the site for which a user would be asked.
type consent struct {
	production string
	volumes    string
}

func (k *consent) flags(c *cobra.Command) {
	c.Flags().StringVar(&k.production, "yes-production", "", "the `name` of the production site, given instead of asked for")
}

func (a *app) downVerb() *cobra.Command {
	var k consent
	var volumes bool
	var name string
	c := &cobra.Command{
		Use:   "down [SELECTOR...]",
		Short: "End nodes; without a selector, everything of the site on this host",
		Long: `Ends nodes and removes what they wrote outside volumes. Without a selector, networks, rules and settings go too.
Volumes, SSH host keys, the journal and layers in the store are kept; --volumes removes the volumes for good.
With --name no site directory is needed: the host knows what there is of the site. orrery ls lists the sites.`,
		RunE: func(c *cobra.Command, args []string) error {
			if name != "" {
				return a.downByName(c.Context(), name, args, volumes, k)
			}
			s, h, chosen, err := a.target(args)
			if err != nil {
				return err
			}
			return a.down(c.Context(), s, h, chosen, volumes, k)
		},
	}
	k.flags(c)
	c.Flags().StringVar(&name, "name", "", "the `site` of that name, wherever its directory is")
	c.Flags().BoolVar(&volumes, "volumes", false, "also remove persistent data for good (always asks)")
	c.Flags().StringVar(&k.volumes, "yes-volumes", "", "the `name` of the site whose data goes, given instead of asked for")
	return c
}

// down ends nodes; those that are chosen or, if that is nil, all that there is of a site.
func (a *app) down(ctx context.Context, s *site.Site, h *local.Host, chosen map[string]bool, volumes bool, k consent) error {
	j := &job{app: a, site: s, host: h, parallel: defaultParallel(),
		plan: func(hosts []observe.Host) (*plan.Plan, error) {
			return plan.Down(s, hosts, plan.Goal{Nodes: chosen, Volumes: volumes}), nil
		},
		ask: func(p *plan.Plan) error { return a.askDown(s, p, volumes, k) },
	}
	result, err := j.run(ctx)
	if err != nil {
		return err
	}
	if chosen == nil {
		if err := a.forgetLive(s, h); err != nil {
			return err
		}
		if err := volume.Unschedule(ctx, s.Key()); err != nil {
			return err
		}
		a.unmark(s.Key())
		if err := a.clearRestore(s); err != nil {
			return err
		}
	}
	if result == nil {
		fmt.Fprintf(a.out, "%s: nothing to take down.\n", s.Name)
		return nil
	}
	fmt.Fprintf(a.out, "%s: %s taken down.%s\n", s.Name, count(done(result.Done, plan.DestroyNode), "node"),
		kept(done(result.Done, plan.RemoveVolume)))
	return nil
}

// downByName takes down a site of which no directory need be there any more: what is on the host tells what there is of it.
func (a *app) downByName(ctx context.Context, name string, selectors []string, volumes bool, k consent) error {
	if len(selectors) > 0 || a.siteDir != "" {
		return problem.New(problem.Usage, "--name takes down all of a site, by what is known of it on this host").Try("leave out selectors and -C, or leave out --name")
	}
	if err := needRoot(); err != nil {
		return err
	}
	s, err := a.siteByName(name)
	if err != nil {
		return err
	}
	h, err := a.bare(s)
	if err != nil {
		return err
	}
	return a.atWork().down(ctx, s, h, nil, volumes, k)
}

// done counts the steps of a kind.
func done(steps []*plan.Step, kind plan.Kind) int {
	n := 0
	for _, s := range steps {
		if s.Kind == kind {
			n++
		}
	}
	return n
}

func kept(removed int) string {
	if removed > 0 {
		return fmt.Sprintf(" %s removed for good. Layers, host keys and the journal are kept.", count(removed, "volume"))
	}
	return " Volumes, layers, host keys and the journal are kept."
}

func (a *app) askDown(s *site.Site, p *plan.Plan, volumes bool, k consent) error {
	if n := p.Counts()[plan.RemoveVolume]; volumes && n > 0 {
		why := fmt.Sprintf("The data of %s of %s would be removed for good.", count(n, "volume"), s.Name)
		if err := a.askName(s, why, "--yes-volumes", k.volumes); err != nil {
			return err
		}
	}
	return a.askProduction(s, fmt.Sprintf("%s would end.", count(p.Counts()[plan.DestroyNode], "node")), k)
}

// askProduction asks for the name of a site that is in production.
func (a *app) askProduction(s *site.Site, what string, k consent) error {
	if !s.Production {
		return nil
	}
	return a.askName(s, s.Name+" is in production. "+what, "--yes-production", k.production)
}

// askName lets the user type the name of the site.
func (a *app) askName(s *site.Site, why, flag, given string) error {
	if given == s.Name {
		return nil
	}
	refused := problem.New(problem.Refused, "not confirmed; nothing was done").Try("type %s when asked, or say %s %s", s.Name, flag, s.Name)
	if f, ok := a.in.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return refused
	}
	a.asked = true
	fmt.Fprintf(a.err, "%s\nType its name to go on: ", why)
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil || strings.TrimSpace(answer) != s.Name {
		return refused
	}
	return nil
}
