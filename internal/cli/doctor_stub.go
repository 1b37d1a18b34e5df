package cli

import "github.com/spf13/cobra"

func (a *app) imageVerb() *cobra.Command { return &cobra.Command{Use: "image"} }
