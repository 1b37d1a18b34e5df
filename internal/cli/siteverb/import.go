package siteverb

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control/draft"
	"orrery/internal/problem"
	"orrery/internal/site/sitefile"
)

// Import returns the command `orrery import`.
func Import(call *verb.Call) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "import HOSTS.INI",
		Short: "Convert a host database in INI format to a site file",
		Long: `Reads a host database with a section for each host name (ip, gateway, roles,
groups, ctid, host_server, cpus, ram, production, …) and prints a site.toml. On
standard error it reports unrecognised entries with their line numbers, and
what is left for you to do. The exit status is 8 if an entry was not
recognised. "-" reads standard input.`,
		Example: "  orrery import hosts.ini > site.toml",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			made, err := draft.Import(args[0], call.In, name)
			if err != nil {
				return err
			}
			if _, err := call.Out.Write(made.Content); err != nil {
				return err
			}
			return printImport(call.Err, made, args[0])
		},
	}
	c.Flags().StringVar(&name, "name", "", "name of the `site` (default: the file's name)")
	return c
}

// printImport prints what of a host database is not in the site file, and what is left to do.
func printImport(errs io.Writer, made *sitefile.Imported, database string) error {
	for _, lost := range made.Lost {
		fmt.Fprintf(errs, "orrery: not recognised: %s\n", lost)
	}
	for _, open := range made.ToDo {
		fmt.Fprintf(errs, "orrery: to do: %s\n", open)
	}
	entries := "1 entry was"
	switch n := len(made.Lost); n {
	case 0:
		return nil
	case 1:
	default:
		entries = fmt.Sprintf("%d entries were", n)
	}
	return problem.New(problem.Left, "the site file was written, but %s not recognised", entries).At(database).
		Try("see above, or the comments in the site file")
}
