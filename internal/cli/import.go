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
		Short:   "Read a host database in INI style and print a site file",
		Long:    `Reads a host database with a section for each host name (ip, gateway, roles, groups, ctid, host_server, cpus, ram, production, …), prints a site.toml, and says on standard error which keys it could not place. "-" reads standard input.`,
		Example: "  orrery import hosts.ini > site.toml",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			in := a.in
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return problem.New(problem.Usage, "the host database cannot be read").At(args[0]).Because(cause(err))
				}
				defer f.Close()
				in = f
			}
			if name == "" {
				name = strings.TrimSuffix(filepath.Base(args[0]), filepath.Ext(args[0]))
			}
			text, unplaced, err := sitefile.ImportINI(in, name)
			if err != nil {
				return err
			}
			for _, key := range unplaced {
				fmt.Fprintf(a.err, "orrery: not placed: %s\n", key)
			}
			_, err = a.out.Write(text)
			return err
		},
	}
	c.Flags().StringVar(&name, "name", "", "name of the `site` (default: that of the file)")
	return c
}
