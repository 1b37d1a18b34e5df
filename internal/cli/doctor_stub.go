package cli

import "github.com/spf13/cobra"

func (a *app) imageVerb() *cobra.Command {
	c := &cobra.Command{Use: "image", Short: "Base images and role layers in the store of this host"}
	c.AddCommand(a.imageBuild())
	return c
}
