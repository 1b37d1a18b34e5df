package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"orrery/internal/pattern"
)

// write writes a page for a verb and for each verb below it.
func write(root *cobra.Command, version, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root.DisableAutoGenTag = true
	root.InitDefaultCompletionCmd() // otherwise only a run of the program adds it
	if err := doc.GenManTree(root, &doc.GenManHeader{Title: "ORRERY", Section: "1", Source: "Orrery " + version}, dir); err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(dir, "orrery*.1"))
	for _, page := range pages {
		err = errors.Join(err, hideEmpty(page))
	}
	return err
}

// hideEmpty removes defaults from a page that say nothing: empty, zero or false. --help does not show them either.
func hideEmpty(page string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	return os.WriteFile(page, emptyDefault().ReplaceAll(text, []byte("$1")), 0o644)
}

var emptyDefault = pattern.New(`(?m)^((?:\\fB-\w\\fP, )?\\fB--[a-z-]+\\fP)(?:=(?:""|\[\]|0s?)?|\[=false\])$`)
