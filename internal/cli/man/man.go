// Package man writes the manual pages.
package man

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"orrery/internal/pattern"
)

// Verb gives the one that writes the pages of a verb and of those below it.
func Verb(root *cobra.Command, version string) *cobra.Command {
	return &cobra.Command{
		Use:    "man DIRECTORY",
		Short:  "Write the manual pages",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root.DisableAutoGenTag = true
			if err := doc.GenManTree(root, &doc.GenManHeader{Title: "ORRERY", Section: "1", Source: "Orrery " + version}, args[0]); err != nil {
				return err
			}
			pages, err := filepath.Glob(filepath.Join(args[0], "orrery*.1"))
			for _, page := range pages {
				err = errors.Join(err, hideEmpty(page))
			}
			return err
		},
	}
}

// hideEmpty takes defaults from a manual page that say nothing: what is empty, zero or false, which --help does not show either.
func hideEmpty(page string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	return os.WriteFile(page, emptyDefault().ReplaceAll(text, []byte("$1")), 0o644)
}

var emptyDefault = pattern.New(`(?m)^((?:\\fB-\w\\fP, )?\\fB--[a-z-]+\\fP)(?:=(?:""|\[\]|0s?)?|\[=false\])$`)
