package cli

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// consent is how a user agrees to what cannot be undone.
type consent struct {
	yes        bool
	production string
}

func (k *consent) flags(c *cobra.Command) {
	c.Flags().BoolVarP(&k.yes, "yes", "y", false, "do not ask")
	c.Flags().StringVar(&k.production, "yes-production", "", "do not ask for the `name` of a production site")
}

func (a *app) downVerb() *cobra.Command {
	var k consent
	var volumes bool
	c := &cobra.Command{
		Use:   "down [SELECTOR...]",
		Short: "End nodes; without a selector, everything of the site on this host",
		Long: `Ends nodes and removes what they wrote outside volumes. Without a selector, networks, rules and settings go too.
Volumes, SSH host keys, the journal and layers in the store are kept; --volumes removes the volumes for good.`,
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.load()
			if err != nil {
				return err
			}
			chosen, err := choose(s, args)
			if err != nil {
				return err
			}
			h, err := a.here(s)
			if err != nil {
				return err
			}
			j := &job{app: a, site: s, host: h, parallel: defaultParallel(),
				plan: func(hosts []observe.Host) (*plan.Plan, error) {
					return plan.Down(s, hosts, plan.Goal{Nodes: chosen, Volumes: volumes}), nil
				},
				ask: func(p *plan.Plan) error { return a.askDown(s, p, volumes, k) },
			}
			result, err := j.run(c.Context())
			if err != nil {
				return err
			}
			if chosen == nil {
				_ = os.Remove(a.markerPath(s.Name))
			}
			if result == nil {
				fmt.Fprintf(a.out, "%s: nothing to take down.\n", s.Name)
				return nil
			}
			fmt.Fprintf(a.out, "%s: %d nodes taken down.%s\n", s.Name, p0(result.Done, plan.DestroyNode), kept(volumes))
			return nil
		},
	}
	k.flags(c)
	c.Flags().BoolVar(&volumes, "volumes", false, "also remove persistent data for good (always asks)")
	return c
}

func p0(done []*plan.Step, kind plan.Kind) int {
	n := 0
	for _, s := range done {
		if s.Kind == kind {
			n++
		}
	}
	return n
}

func kept(volumes bool) string {
	if volumes {
		return " Layers, host keys and the journal are kept."
	}
	return " Volumes, layers, host keys and the journal are kept."
}

func (a *app) askDown(s *site.Site, p *plan.Plan, volumes bool, k consent) error {
	if s.Production {
		return a.askName(s, fmt.Sprintf("%s is in production; %d nodes would end.", s.Name, p.Counts()[plan.DestroyNode]), k)
	}
	if volumes && p.Counts()[plan.RemoveVolume] > 0 {
		return a.askName(s, fmt.Sprintf("The data of %d volumes of %s would be removed for good.", p.Counts()[plan.RemoveVolume], s.Name), k)
	}
	return nil
}

// askName lets the user type the name of the site.
func (a *app) askName(s *site.Site, why string, k consent) error {
	if k.production == s.Name || k.yes && !s.Production {
		return nil
	}
	refused := problem.New(problem.Refused, "not confirmed; nothing was done").Try("type %s when asked, or say --yes-production %s", s.Name, s.Name)
	if f, ok := a.in.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return refused
	}
	fmt.Fprintf(a.err, "%s\nType its name to go on: ", why)
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil || strings.TrimSpace(answer) != s.Name {
		return refused
	}
	return nil
}
