package siteverb

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control/draft"
	"orrery/internal/problem"
	"orrery/internal/text/humanize"
)

// Init returns the command `orrery init`.
func Init(call *verb.Call) *cobra.Command {
	var from, name, example string
	c := &cobra.Command{
		Use:   "init [DIRECTORY]",
		Short: "Write a small site with comments to start from",
		Long: `Writes a small site with comments: two nodes and a role, which come up healthy
without changes. Its subnet is free on this host, and its nodes let in your SSH
key, if you have one. With --example, it writes one of the examples of Orrery,
with other subnets if its own are taken here. With --from, it converts a host
database in INI format, as "orrery import" does, and writes an empty role for
each role in the database.`,
		Example: "  orrery init mysite\n  orrery init --example quickstart mysite\n  orrery init --from kat7.ini kat7",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			if from != "" {
				return initFrom(call, dir, from, name)
			}
			write := draft.WriteExample
			if c.Flags().Changed("example") {
				if example == "" {
					return problem.New(problem.Usage, "no example given").
						Try("choose one of %s", strings.Join(draft.Examples(), ", "))
				}
				write = func(dir, name string) ([]string, error) { return draft.WriteCopy(dir, name, example) }
			}
			files, err := write(dir, name)
			if err == nil {
				fmt.Fprintf(call.Out, "wrote %s and %s\n\n  orrery -C %s check\n  sudo orrery -C %s up\n",
					files[0], humanize.Plural(len(files)-1, "other file"), dir, dir)
			}
			return err
		},
	}
	c.Flags().StringVar(&from, "from", "", "convert the host database in this `file` (INI format)")
	c.Flags().StringVar(&name, "name", "",
		"name of the `site` (default: that of the directory or file)")
	c.Flags().StringVar(&example, "example", "", "copy the example called `name`")
	c.MarkFlagsMutuallyExclusive("from", "example")
	return c
}

func initFrom(call *verb.Call, dir, from, name string) error {
	made, files, err := draft.WriteImported(dir, from, call.In, name)
	if err != nil {
		return err
	}
	fmt.Fprintf(call.Out, "wrote %s for site %s, and %s\n\n  orrery -C %[4]s check\n  orrery -C %[4]s graph > site.svg\n",
		files[0], made.Site, humanize.Plural(len(files)-1, "empty role"), dir)
	return printImport(call.Err, made, from)
}
