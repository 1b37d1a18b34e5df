package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/phrase"
	"orrery/internal/problem"
	"orrery/internal/site/sitefile"
)

func (a *app) importVerb() *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:     "import HOSTS.INI",
		Short:   "Convert a host database in INI format to a site file",
		Long:    `Reads a host database with a section for each host name (ip, gateway, roles, groups, ctid, host_server, cpus, ram, production, …) and prints a site.toml. Unrecognised entries are reported on standard error with their line numbers, as is what is left for you to do. The exit status is 8 if an entry was not recognised. "-" reads standard input.`,
		Example: "  orrery import hosts.ini > site.toml",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			in := a.in
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return problem.New(problem.Usage, "the host database cannot be read").At(args[0]).Because(problem.Reason(err))
				}
				defer f.Close()
				in = f
			}
			if name == "" {
				name = strings.TrimSuffix(filepath.Base(args[0]), filepath.Ext(args[0]))
			}
			made, err := sitefile.ImportINI(in, name)
			if err != nil {
				return err
			}
			for _, lost := range made.Lost {
				fmt.Fprintf(a.err, "orrery: not placed: %s\n", lost)
			}
			for _, open := range made.ToDo {
				fmt.Fprintf(a.err, "orrery: to do: %s\n", open)
			}
			if _, err := a.out.Write(made.Content); err != nil {
				return err
			}
			if len(made.Lost) > 0 {
				return problem.New(problem.Left, "the site file is written, but %s of the database is not in it, or not as it was", phrase.Count(len(made.Lost), "item")).At(args[0]).
					Try("see above, or the comments in the site file")
			}
			return nil
		},
	}
	c.Flags().StringVar(&name, "name", "", "name of the `site` (default: that of the file)")
	return c
}
