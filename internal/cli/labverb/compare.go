package labverb

import (
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/verb"
	"orrery/internal/control/lab"
	"orrery/internal/problem"
)

func compare(call *verb.Call) *cobra.Command {
	var markdown bool
	var html string
	c := &cobra.Command{
		Use:   "compare BEFORE… -- AFTER…",
		Short: "Compare runs before and after a change",
		Long: `Compares bundles from before and after a change, for instance a kernel upgrade:
which figures differ, which of their ratios to the bare host differ, and what
else is different between the hosts. Runs vary by chance: one bundle on each
side only shows that these two runs differ. Make three of each (orrery lab run
--repeat 3).`,
		Example: "  orrery lab compare --html compared.html A1 A2 A3 -- B1 B2 B3\n  orrery lab compare default-20261101-120000 default-20261122-120000",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			before, after, err := splitRuns(c, args)
			if err != nil {
				return err
			}
			compared, err := lab.Compare(call.Session, before, after)
			if err != nil {
				return err
			}
			if html != "" {
				if err := lab.WritePage(compared, html); err != nil {
					return err
				}
			}
			switch {
			case reply.IsJSON(call.Out):
				return compared.JSON(reply.Result(call.Out))
			case markdown:
				return compared.Markdown(call.Out)
			}
			err = compared.Text(call.Out)
			if html != "" {
				fmt.Fprintf(call.Out, "\n  %s\n", html)
			}
			return err
		},
	}
	c.Flags().BoolVar(&markdown, "markdown", false, "print Markdown")
	c.Flags().StringVar(&html, "html", "", "also write an HTML page to this `file`")
	verb.WithJSON(c, "print JSON").MarkFlagsMutuallyExclusive("json", "markdown")
	return c
}

// splitRuns splits the arguments of a command into runs before and after a change. They are separated
// by --, which is optional if there are two.
func splitRuns(c *cobra.Command, args []string) (before, after []string, err error) {
	at := c.ArgsLenAtDash()
	if at < 0 && len(args) == 2 {
		at = 1
	}
	if at <= 0 || at >= len(args) {
		return nil, nil, problem.New(problem.Usage, "the bundles before and after the change are not separated").
			Try("write -- between them: orrery lab compare A1 A2 A3 -- B1 B2 B3")
	}
	return args[:at], args[at:], nil
}
