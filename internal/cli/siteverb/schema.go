package siteverb

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/verb"
	"orrery/internal/problem"
	"orrery/internal/site/sitefile"
	"orrery/internal/strict"
)

// schemas are the files that have a schema.
var schemas = map[string]func() strict.JSONSchema{"site": sitefile.SiteSchema, "role": sitefile.RoleSchema}

// Schema returns the command `orrery schema`.
func Schema(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use:   "schema {site|role}",
		Short: "Print the JSON Schema of site.toml or role.toml",
		Long: `Prints the JSON Schema (draft 2020-12) of site.toml or role.toml, by which
editors complete keys, show what they mean, and mark mistakes. "orrery check"
knows more rules than a schema can express.`,
		Example:   "  orrery schema site > site.schema.json",
		Args:      cobra.ExactArgs(1),
		ValidArgs: []string{"site", "role"},
		RunE: func(_ *cobra.Command, args []string) error {
			schema := schemas[args[0]]
			if schema == nil {
				return problem.New(problem.Usage, "there is no schema %q", args[0]).Try("write site or role")
			}
			made := schema()
			if reply.IsJSON(call.Out) {
				return reply.JSON(call.Out, made)
			}
			e := json.NewEncoder(call.Out)
			e.SetEscapeHTML(false)
			e.SetIndent("", "  ")
			return e.Encode(made)
		},
	}
}
