package nodeverb

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/screen"
	"orrery/internal/cli/verb"
	"orrery/internal/control/nodes"
	"orrery/internal/site"
)

// Cp returns the command `orrery cp`.
func Cp(call *verb.Call) *cobra.Command {
	var parallel int
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "cp SOURCE... DESTINATION",
		Short: "Copy files and directories to, from and between nodes",
		Long: `Copies files, directories and links, with their modes and times; NODE:PATH
names a path in a node. Files copied into a node belong to root there. Files
copied to this host belong to you, without set-user-ID and set-group-ID.
Devices and named pipes are skipped and reported, and never replaced; a
destination that is a link is followed. A destination that ends in / is a
directory, and is created if it is missing.

SELECTOR:PATH copies to each of several nodes, or from each of them into a
directory NODE below the destination. The exit status is 100 + the number of
nodes that failed (at most 200).`,
		Example: "  orrery cp portal:/var/log/dpkg.log .\n  orrery cp table.csv db:/tmp/\n  orrery cp role=receptor:/var/log/daemon.log logs",
		Args:    cobra.MinimumNArgs(2),
		RunE: call.WithRunningHosts(func(ctx context.Context, s *site.Site, args []string) error {
			last := len(args) - 1
			c, err := nodes.NewCopyJob(ctx, call.Session, s, args[:last], args[last])
			if err != nil {
				return err
			}
			c.Parallel, c.Timeout = parallel, timeout
			return copyAll(ctx, call.Output, c)
		}),
	}
	f := c.Flags()
	f.IntVar(&parallel, "parallel", 4, "maximum number of nodes at once")
	f.DurationVar(&timeout, "timeout", 0, "give up on a node after this time (default: never)")
	call.ReleaseFlag(c)
	return verb.WithJSON(c, "print the result for each node as a JSON list")
}

func copyAll(ctx context.Context, to verb.Output, c *nodes.CopyJob) error {
	show := screen.NewMeter(to.Err, "copied")
	defer show.Close()
	if c.Nodes == nil || !reply.IsJSON(to.Out) && !c.Several() {
		return c.Once(ctx, show.Add)
	}
	endings, err := c.Each(ctx, newSpeech(to.Out, to.Err, c.Nodes, false), show.Add)
	return printTally(to.Err, endings, err)
}
