package siteverb

import (
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control/draft"
	"orrery/internal/text/humanize"
)

// Init returns the command `orrery init`.
func Init(call *verb.Call) *cobra.Command {
	var from, name string
	c := &cobra.Command{
		Use:   "init [DIRECTORY]",
		Short: "Write a small site with comments to start from",
		Long: `Writes a small site with comments: two nodes and a role, which come up healthy
without changes. With --from, it converts a host database in INI format, as
"orrery import" does, and writes an empty role for each role in the database.`,
		Example: "  orrery init mysite\n  orrery init --from kat7.ini kat7",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			if from == "" {
				files, err := draft.WriteExample(dir, name)
				if err == nil {
					fmt.Fprintf(call.Out, "wrote %s and %s\n\n  orrery -C %s check\n  sudo orrery -C %s up\n", files[0], files[1],
						dir, dir)
				}
				return err
			}
			made, files, err := draft.WriteImported(dir, from, call.In, name)
			if err != nil {
				return err
			}
			fmt.Fprintf(call.Out, "wrote %s for site %s, and %s\n\n  orrery -C %[4]s check\n  orrery -C %[4]s graph > site.svg\n",
				files[0], made.Site, humanize.Plural(len(files)-1, "empty role"), dir)
			return printImport(call.Err, made, from)
		},
	}
	c.Flags().StringVar(&from, "from", "", "convert the host database in this `file` (INI format)")
	c.Flags().StringVar(&name, "name", "",
		"name of the `site` (default: that of the directory or file)")
	return c
}
