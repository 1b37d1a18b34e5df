package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control/draft"
	"orrery/internal/phrase"
	"orrery/internal/problem"
	"orrery/internal/site/sitefile"
)

func initVerb(call *verb.Call) *cobra.Command {
	var from, name string
	c := &cobra.Command{
		Use:   "init [DIRECTORY]",
		Short: "Write a small site with comments to start from",
		Long: `Writes a small site with comments: two nodes and a role, which come up healthy as they are. With --from, the site is that of a host database in INI
format, as "orrery import" reads it, with an empty role for each role that it names.`,
		Example: "  orrery init mysite\n  orrery init --from kat7.ini kat7",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			if from == "" {
				files, err := draft.Small(dir, name)
				if err == nil {
					fmt.Fprintf(call.Out, "wrote %s and %s\n\n  orrery -C %s check\n  sudo orrery -C %s up\n", files[0], files[1], dir, dir)
				}
				return err
			}
			made, files, err := draft.Imported(dir, from, call.In, name)
			if err != nil {
				return err
			}
			fmt.Fprintf(call.Out, "wrote %s, of site %s, and %s\n\n  orrery -C %[4]s check\n  orrery -C %[4]s graph > site.svg\n", files[0], made.Site, phrase.Count(len(files)-1, "empty role"), dir)
			return printImport(call.Err, made, from)
		},
	}
	c.Flags().StringVar(&from, "from", "", "make the site of this host database in INI format, a `file`")
	c.Flags().StringVar(&name, "name", "", "what the `site` is called (default: as the directory or, with --from, as that file)")
	return c
}

func importVerb(call *verb.Call) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:     "import HOSTS.INI",
		Short:   "Convert a host database in INI format to a site file",
		Long:    `Reads a host database with a section for each host name (ip, gateway, roles, groups, ctid, host_server, cpus, ram, production, …) and prints a site.toml. Unrecognised entries are reported on standard error with their line numbers, as is what is left for you to do. The exit status is 8 if an entry was not recognised. "-" reads standard input.`,
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
	c.Flags().StringVar(&name, "name", "", "name of the `site` (default: that of the file)")
	return c
}

// printImport says what of a host database is not in the site file, and what is left to be done.
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
	return problem.New(problem.Left, "the site file is written, but %s not recognised", entries).At(database).
		Try("see above, or the comments in the site file")
}
