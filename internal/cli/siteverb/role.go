package siteverb

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/table"
	"orrery/internal/cli/verb"
	"orrery/internal/control/draft"
	"orrery/internal/text/humanize"
)

// Role returns the command `orrery role`.
func Role(call *verb.Call) *cobra.Command {
	return verb.Group("role", "Write and fetch roles, and show those that ship with Orrery",
		roleNew(call), roleFetch(call), roleLs(call), roleShow(call), roleCopy(call))
}

func roleNew(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use:   "new NAME",
		Short: "Write a role with comments to start from",
		Long: `Writes roles/NAME/role.toml in the site directory. Its comments propose what a
role may have; without them the role does nothing.`,
		Example: "  orrery role new web",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := call.Session.Directory()
			if err != nil {
				return err
			}
			path, err := draft.WriteRole(dir, args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(call.Out, "wrote %s\n\nGive it to nodes in site.toml: roles = [%q]\n", path, args[0])
			return nil
		},
	}
}

func roleLs(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the roles that ship with Orrery",
		Long: `Lists the roles that ship with Orrery. A node has one if it names it:
roles = ["orrery/postgresql"].`,
		Example: "  orrery role ls",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			all, err := draft.ShippedRoles()
			if err != nil {
				return err
			}
			return table.List(call.Out, all, "ROLE\tDESCRIPTION",
				func(r draft.ShippedRole) []any { return []any{r.Name, r.Description} })
		},
	}
}

func roleShow(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Show the parameters of a role that ships with Orrery",
		Long: `Shows what a role that ships with Orrery puts on a node, and its parameters,
which the site file sets in [role."orrery/NAME"].`,
		Example: "  orrery role show orrery/postgresql",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := draft.DescribeShipped(args[0])
			if err != nil {
				return err
			}
			return reply.Answer(call.Out, r, func() { printRole(call.Out, r) })
		},
	}
}

func printRole(w io.Writer, r *draft.ShippedRole) {
	fmt.Fprintf(w, "%s: %s\n\n", r.Name, r.Description)
	for _, line := range []struct {
		title string
		names []string
	}{{"packages", r.Packages}, {"services", r.Services}, {"files", r.Files}, {"volumes", r.Volumes},
		{"secrets", r.Secrets}} {
		if len(line.names) > 0 {
			fmt.Fprintf(w, "%-9s %s\n", line.title+":", strings.Join(line.names, ", "))
		}
	}
	fmt.Fprintf(w, "\n[role.%q]\n", r.Name)
	for _, p := range r.Params {
		fmt.Fprintf(w, "# %s%s%s\n", p.Doc, oneOf(p.Values), required(p.Required))
		if p.Required {
			fmt.Fprintf(w, "# %s =\n", p.Name)
		} else {
			fmt.Fprintf(w, "%s = %s\n", p.Name, tomlOf(p.Default))
		}
	}
}

func oneOf(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return " (" + strings.Join(values, ", ") + ")"
}

func required(yes bool) string {
	if yes {
		return " (must be set)"
	}
	return ""
}

// tomlOf returns a default as TOML: of the values that a role that ships with Orrery may have, JSON looks the
// same.
func tomlOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

func roleCopy(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use:   "copy NAME [NEW-NAME]",
		Short: "Copy a role that ships with Orrery, to change it",
		Long: `Copies a role that ships with Orrery to roles/NEW-NAME in the site directory.
The copy is a role of the site: change it as you like. It stays as it is when
you upgrade Orrery. Without NEW-NAME, it has the same name without "orrery/".`,
		Example: "  orrery role copy orrery/postgresql\n  orrery role copy orrery/nginx front",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := call.Session.Directory()
			if err != nil {
				return err
			}
			name := ""
			if len(args) == 2 {
				name = args[1]
			}
			paths, err := draft.CopyRole(dir, args[0], name)
			if err != nil {
				return err
			}
			role := filepath.Dir(paths[0])
			name = filepath.Base(role)
			fmt.Fprintf(call.Out, "wrote %s to %s\n\nGive it to nodes in site.toml: roles = [%q]\nIts parameters are in [role.%s].\n",
				humanize.Plural(len(paths), "file"), role, name, name)
			return nil
		},
	}
}
