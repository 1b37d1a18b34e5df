package cli

import "github.com/spf13/cobra"

// completeNodes offers the shell the names of nodes and groups where a verb takes nodes.
func (a *app) completeNodes(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	s, err := a.load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var words []string
	for _, n := range s.Nodes {
		words = append(words, n.Name)
	}
	for _, g := range s.Groups {
		words = append(words, "group="+g.Name)
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}
