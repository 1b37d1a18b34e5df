package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"orrery/docs"
	"orrery/internal/problem"
)

// A topic is a part of the reference that orrery help shows.
type topic struct {
	name, short string
	text        func() string
}

// topics are the topics in the order in which orrery help lists them.
func topics() []topic {
	return []topic{
		{"site.toml", "every key of the site file", func() string { return docs.SiteFile }},
		{"role.toml", "every key of a role", func() string { return docs.Roles }},
		{"templates", "what templates of roles may use", func() string {
			return docs.Section(docs.Roles, "Templates") + docs.Section(docs.Roles, "What a step sees")
		}},
		{"selectors", "how to name nodes on the command line", func() string {
			return docs.Section(docs.SiteFile, "Selectors")
		}},
		{"exit", "the exit statuses", func() string { return docs.Section(docs.Commands, "Exit status") }},
		{"environment", "the environment variables", func() string {
			return docs.Section(docs.Commands, "Environment")
		}},
	}
}

// page returns the text of a topic, or "" if there is no such topic.
func page(name string) string {
	for _, t := range topics() {
		if t.name == name {
			return t.text()
		}
	}
	return ""
}

// newHelp returns the verb that explains verbs, topics and keys.
func newHelp(root *cobra.Command) *cobra.Command {
	var long strings.Builder
	long.WriteString("Help explains a verb, a key of site.toml or role.toml, or one of these topics:\n\n")
	for _, t := range topics() {
		long.WriteString("  " + t.name + strings.Repeat(" ", 14-len(t.name)) + t.short + "\n")
	}
	return &cobra.Command{
		Use:   "help [VERB | TOPIC | KEY]",
		Short: "Explain a verb, a topic or a key of the site file",
		Long:  long.String(),
		Example: `  orrery help lab run
  orrery help network.lan.nat
  orrery help site.toml | less`,
		// help needs no site, no log and no permission
		PersistentPreRun: func(*cobra.Command, []string) {},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var all []cobra.Completion
			if c, _, err := root.Find(args); err == nil {
				for _, inner := range c.Commands() {
					if inner.IsAvailableCommand() {
						all = append(all, cobra.CompletionWithDesc(inner.Name(), inner.Short))
					}
				}
			}
			for _, t := range topics() {
				if len(args) == 0 {
					all = append(all, cobra.CompletionWithDesc(t.name, t.short))
				}
			}
			return all, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error { return explain(root, c, args) },
	}
}

// explain prints the help for the arguments of orrery help.
func explain(root, help *cobra.Command, args []string) error {
	if target, rest, err := root.Find(args); err == nil && len(rest) == 0 {
		target.InitDefaultHelpFlag()
		return target.Help()
	}
	if len(args) == 1 {
		text := page(args[0])
		if text == "" {
			text = keyHelp(args[0])
		}
		if text != "" {
			help.Print(text)
			return nil
		}
	}
	return problem.New(problem.Usage, "%s is not a verb, a topic or a key", strings.Join(args, " ")).
		Try("orrery --help lists the verbs, orrery help --help the topics, orrery help site.toml the keys")
}
