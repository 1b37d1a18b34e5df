package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/control"
	"orrery/internal/phrase"
	"orrery/internal/problem"
)

func (a *app) switchVerb() *cobra.Command {
	var text, by string
	var within time.Duration
	var wait bool
	c := &cobra.Command{
		Use:   "switch [SELECTOR...] --release NUMBER",
		Short: "Make a staged release live, all of it or nothing",
		Long: `Makes a release live for a set of nodes. All of them are proven in quarantine once more; then the links of the new nodes go onto the live networks and
those of the old into quarantine, in one batch; volumes that are not for two change hands, and what only live nodes do is done. Health
is proven again. If anything fails, all of it is taken back. The former release is kept: "orrery rollback" returns to it.

With --confirm-within, the release is on trial for that time, which begins when it is live: it goes back by itself unless "orrery confirm" comes or its health
checks hold for all of the time (--confirm-by hand: unless "orrery confirm" comes), and at once if a check fails for good.
The exit status is 0 when the release is live and confirmed, 12 when it is on trial, 13 when the set is back at its former release and 14
when it is not wholly at one release.`,
		Example: "  orrery switch system --release 701 --confirm-within 10m",
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.Load()
			if err != nil {
				return err
			}
			number, err := control.ReleaseNumber(s, text)
			if err != nil {
				return err
			}
			byHand, err := confirmedBy(by)
			if err != nil {
				return err
			}
			made, err := a.Switch(c.Context(), s, args, control.SwitchOptions{Release: number, Within: within, ByHand: byHand})
			if err != nil {
				return err
			}
			a.tellSwitched(made)
			if made.Trial == nil {
				return nil
			}
			a.TellTrial(s, made.Trial)
			if !wait {
				return problem.Status(problem.Trial)
			}
			end, err := a.AwaitTrial(c.Context(), s)
			return a.tellEnd(s, end, err)
		},
	}
	a.productionFlag(c)
	c.Flags().StringVar(&text, "release", "", `the release's number, "next" for the highest that is declared, or 0 for what is of no release`)
	c.Flags().DurationVar(&within, "confirm-within", 0, "go back by itself after this time, unless confirmed")
	c.Flags().StringVar(&by, "confirm-by", "checks", `what confirms: "checks" that hold for all of the time, or only "orrery confirm" by "hand"`)
	c.Flags().BoolVar(&wait, "wait", false, "with --confirm-within: wait for how it ends")
	return c
}

func confirmedBy(text string) (byHand bool, err error) {
	switch text {
	case "checks":
		return false, nil
	case "hand":
		return true, nil
	}
	return false, problem.New(problem.Usage, "--confirm-by %q", text).Try("checks or hand")
}

func (a *app) tellSwitched(made *control.Switched) {
	if made.Already {
		fmt.Fprintf(a.out, "%s: release %s is live already.\n", made.Site, control.ReleaseNames(made.To))
		return
	}
	fmt.Fprintf(a.out, "%s: %s at release %s, formerly %s, switched in %s.\n", made.Site, phrase.Count(len(made.To), "node"),
		control.ReleaseNames(made.To), control.ReleaseNames(made.From), made.Took.Round(time.Millisecond))
	if made.Kept {
		fmt.Fprintln(a.out, "What was live before is kept: orrery rollback returns to it.")
	}
}
