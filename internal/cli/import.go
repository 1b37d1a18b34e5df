package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

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
			made, err := a.readINI(args[0], name)
			if err != nil {
				return err
			}
			if _, err := a.out.Write(made.Content); err != nil {
				return err
			}
			return a.tellImport(made, args[0])
		},
	}
	c.Flags().StringVar(&name, "name", "", "name of the `site` (default: that of the file)")
	return c
}

// readINI reads a host database; "-" is the standard input. A site that is not named is called as the file.
func (a *app) readINI(path, name string) (*sitefile.Imported, error) {
	in := a.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, problem.New(problem.Usage, "the host database cannot be read").At(path).Because(problem.Reason(err))
		}
		defer f.Close()
		in = f
	}
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	return sitefile.ImportINI(in, name)
}

// tellImport says what of a host database is not in the site file, and what is left to be done.
func (a *app) tellImport(made *sitefile.Imported, database string) error {
	for _, lost := range made.Lost {
		fmt.Fprintf(a.err, "orrery: not recognised: %s\n", lost)
	}
	for _, open := range made.ToDo {
		fmt.Fprintf(a.err, "orrery: to do: %s\n", open)
	}
	if len(made.Lost) == 0 {
		return nil
	}
	return problem.New(problem.Left, "the site file is written, but %s not recognised", wereEntries(len(made.Lost))).At(database).
		Try("see above, or the comments in the site file")
}

func wereEntries(n int) string {
	if n == 1 {
		return "1 entry was"
	}
	return fmt.Sprintf("%d entries were", n)
}
