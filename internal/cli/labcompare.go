package cli

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/control/lab"
	"orrery/internal/host"
)

func (a *app) labCompareVerb() *cobra.Command {
	var asJSON, markdown bool
	var html string
	c := &cobra.Command{
		Use:     "compare BEFORE AFTER",
		Short:   "Compare two bundles with the same statistics",
		Long:    "Compares two bundles, for instance from before and after a kernel upgrade: which figures differ, which of their ratios to the bare host differ, and what else is different between the two hosts.",
		Example: "  orrery lab compare default-20261101-120000 default-20261122-120000 --html compared.html",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			compared, err := lab.Compare(&a.Session, args[0], args[1])
			if err != nil {
				return err
			}
			if html != "" {
				var page bytes.Buffer
				if err := compared.HTML(&page); err != nil {
					return err
				}
				if err := host.WriteFile(host.File{Path: html, Content: page.Bytes(), Mode: 0o644}); err != nil {
					return err
				}
			}
			switch {
			case asJSON:
				return compared.JSON(reply.Result(a.out))
			case markdown:
				return compared.Markdown(a.out)
			}
			err = compared.Text(a.out)
			if html != "" {
				fmt.Fprintf(a.out, "\n  %s\n", html)
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&markdown, "markdown", false, "print Markdown")
	c.Flags().StringVar(&html, "html", "", "also write a page to that `file`")
	c.MarkFlagsMutuallyExclusive("json", "markdown")
	return c
}
