package siteverb

import (
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control/rolefetch"
	"orrery/internal/text/humanize"
)

func roleFetch(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use:   "fetch",
		Short: "Fetch the git repositories in roles_path",
		Long: `Fetches the git repositories that roles_path in [site] names, each at one
commit, and stores their files in .fetched_roles in the site directory. Commits
that are stored are not fetched again. If root calls it, git runs as the owner
of the site directory, with the configuration and keys of that user.`,
		Example: "  orrery role fetch",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := call.Session.Directory()
			if err != nil {
				return err
			}
			all, err := rolefetch.Fetch(c.Context(), dir, func(text string) { fmt.Fprintln(call.Err, text) })
			for _, one := range all {
				fmt.Fprintf(call.Out, "stored %s of commit %s\n", humanize.Plural(one.Files, "file"), one.Commit)
				if one.Skipped > 0 {
					fmt.Fprintf(call.Out, "left out links and submodules: %d\n", one.Skipped)
				}
			}
			if err == nil && len(all) == 0 {
				fmt.Fprintln(call.Out, "Nothing to fetch.")
			}
			return err
		},
	}
}
