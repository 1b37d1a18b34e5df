package cli

import "github.com/spf13/cobra"

func (a *app) doctorVerb() *cobra.Command { return &cobra.Command{Use: "doctor"} }
func (a *app) imageVerb() *cobra.Command { return &cobra.Command{Use: "image"} }
