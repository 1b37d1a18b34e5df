package siteverb

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control/draft"
	"orrery/internal/problem"
	"orrery/internal/site/sitefile"
	"orrery/internal/text/humanize"
)

// Import returns the command `orrery import`.
func Import(call *verb.Call) *cobra.Command {
	var name, from, into string
	c := &cobra.Command{
		Use:   "import FILE...",
		Short: "Convert what describes machines elsewhere to a site",
		Long: `Reads a host database with a section for each host name (ip, gateway, roles,
groups, ctid, host_server, cpus, ram, production, …) and prints a site.toml. On
standard error it reports unrecognised entries with their line numbers, and
what is left for you to do. The exit status is 8 if an entry was not
recognised. "-" reads standard input.

The other formats become a site directory, named by --into:

  proxmox  containers of Proxmox VE (/etc/pve/lxc/101.conf). Give their vzdump
           archives as well: nodes start from them.
  compose  a file of Docker Compose. Each service becomes a node, with a role
           to write: images of applications are not systems that boot.
  ansible  an inventory of Ansible, in INI or YAML. Each host becomes a node.`,
		Example: `  orrery import hosts.ini > site.toml
  orrery import --from proxmox --into site /etc/pve/lxc/101.conf
  orrery import --from compose --into shop docker-compose.yml
  orrery import --from ansible --into site inventory.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			convert := converterOf(from)
			switch {
			case convert == nil && from != fromINI:
				return problem.New(problem.Usage, "cannot import from %q", from).
					Try("--from ini, proxmox, compose or ansible")
			case len(args) > 1 && from != fromProxmox:
				return problem.New(problem.Usage, "wrong number of arguments").Try("name one file")
			case convert != nil:
				return importDirectory(call, convert, into, name, args)
			}
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
	c.Flags().StringVar(&from, "from", fromINI, "the `format`: ini, proxmox, compose, ansible")
	c.Flags().StringVar(&into, "into", "", "the site `directory` to write, unless from ini")
	return c
}

const (
	fromINI     = "ini"
	fromProxmox = "proxmox"
)

// A converter writes a site directory from files, and returns the paths of what it wrote.
type converter func(dir, name string, files []string) (*sitefile.Imported, []string, error)

// converterOf returns the converter of a format that becomes a site directory, or nil.
func converterOf(from string) converter {
	switch from {
	case fromProxmox:
		return draft.ImportProxmox
	case "compose":
		return one(draft.ImportCompose)
	case "ansible":
		return one(draft.ImportAnsible)
	}
	return nil
}

// one returns the converter of a format with one file.
func one(convert func(dir, name, file string) (*sitefile.Imported, []string, error)) converter {
	return func(dir, name string, files []string) (*sitefile.Imported, []string, error) {
		return convert(dir, name, files[0])
	}
}

// importDirectory writes a site directory.
func importDirectory(call *verb.Call, convert converter, into, name string, files []string) error {
	if into == "" {
		return problem.New(problem.Usage, "no directory to write the site to").Try("--into DIRECTORY")
	}
	made, paths, err := convert(into, name, files)
	if err != nil {
		return err
	}
	fmt.Fprintf(call.Out, "wrote %s for site %s, and %s\n\n  orrery -C %s check\n", paths[0], made.Site,
		humanize.Plural(len(paths)-1, "role"), into)
	return printImport(call.Err, made, paths[0])
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
