package nodeverb

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/cli/value"
	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/control/nodes"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// Logs returns the command `orrery logs`.
func Logs(call *verb.Call) *cobra.Command {
	var o nodes.LogOptions
	var layer string
	var raw bool
	var since value.Age
	var pattern value.Pattern
	c := &cobra.Command{
		Use:   "logs [SELECTOR] [UNIT...]",
		Short: "Show what roles and services printed on nodes",
		Long: `Prints what the roles printed when they were applied to a node, then the end of
its systemd journal (if you name units, only theirs). With several nodes, each
line is prefixed with the name of its node. --follow follows all of them at
once, and continues with the release of a node that goes live.

--since prints only the journal, from that long ago, without the output of
roles, which has no times. --grep prints only lines that match a pattern (RE2,
which is matched on this host). Both read the whole journal by default. With
--lines, --grep searches only that many lines. --layer DIGEST prints the build
log of a layer instead.`,
		Example: "  orrery logs portal nginx.service\n  orrery logs role=receptor -f\n" +
			"  orrery logs --since 10m --grep '(?i)error|timeout' all",
		RunE: func(c *cobra.Command, args []string) error {
			to := call.Raw(raw)
			if layer != "" {
				show := func(*cobra.Command, []string) error { return nodes.PrintBuildLog(call.Session, layer, to.Out) }
				return call.AsRoot(show)(c, args)
			}
			o.Moved = func(node string, release int) {
				fmt.Fprintf(to.Err, "orrery: release %s is now live on node %s; its journal follows.\n",
					site.ReleaseName(release), node)
			}
			return call.WithRunningHosts(func(ctx context.Context, s *site.Site, args []string) error {
				if len(args) == 0 {
					return problem.New(problem.Usage, "no node given").Try("orrery logs NODE")
				}
				o.Units, o.Since, o.Grep = args[1:], time.Duration(since), pattern.Regexp
				if (o.Since > 0 || o.Grep != nil && !o.Follow) && !c.Flags().Changed("lines") {
					o.Lines = -1
				}
				return printLogs(ctx, call.Session, s, to, args[0], o)
			})(c, args)
		},
	}
	c.Flags().StringVar(&layer, "layer", "", "print the build log of the layer with this `digest`")
	c.Flags().BoolVarP(&o.Follow, "follow", "f", false, "keep printing the journal as it is written")
	rawFlag(c, &raw)
	c.Flags().IntVarP(&o.Lines, "lines", "n", 200, "how many lines of the journal to print")
	c.Flags().Var(&since, "since", "print only the journal, from this `time` ago, such as 10m")
	c.Flags().Var(&pattern, "grep", "print only lines that match this `pattern`")
	for _, flag := range []string{"since", "grep"} {
		c.MarkFlagsMutuallyExclusive("layer", flag)
	}
	call.ReleaseFlag(c)
	call.WithoutFlag(c)
	return c
}

func printLogs(ctx context.Context, session *control.Session, s *site.Site, to verb.Output, of string,
	o nodes.LogOptions) error {
	if _, one := s.Node(of); one {
		absent, err := nodes.PrintNodeLogs(ctx, session, s, of, o, to.Out, to.Err)
		if err == nil && absent != nil {
			fmt.Fprintf(to.Err, "orrery: %v\n", absent)
		}
		return err
	}
	endings, err := nodes.PrintLogs(ctx, session, s, of, o, func(of []*site.Node) nodes.Output {
		if o.Follow {
			return newEndless(to.Out, to.Err, of)
		}
		return newPrefixed(to.Out, to.Err, of, false)
	})
	if err != nil || len(nodes.Failed(endings)) == 0 {
		return err
	}
	return printTally(to.Err, endings, nil)
}
