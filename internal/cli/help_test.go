package cli

import (
	"bytes"
	"iter"
	"orrery/internal/cli/labverb"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// eachVerb calls do for a verb and all verbs below it.
func eachVerb(c *cobra.Command, do func(c *cobra.Command)) {
	do(c)
	for _, inner := range c.Commands() {
		eachVerb(inner, do)
	}
}

// helpLines returns the lines of a verb's help.
func helpLines(t *testing.T, c *cobra.Command) iter.Seq[string] {
	t.Helper()
	var out bytes.Buffer
	c.SetOut(&out)
	if err := c.Help(); err != nil {
		t.Error(err)
	}
	return strings.Lines(out.String())
}

// TestEmptyDefaults: no help text has a meaningless default value. (For manual pages:
// packaging/man.)
func TestEmptyDefaults(t *testing.T) {
	empty := regexp.MustCompile(`\(default(:? *| "")\)|\(default \[?\]?\)`)
	eachVerb(Verbs(labverb.Lab{}), func(c *cobra.Command) {
		for line := range helpLines(t, c) {
			if empty.MatchString(line) || strings.Count(line, "(default") > 1 {
				t.Errorf("%s --help: %s", c.CommandPath(), line)
			}
		}
	})
}

// TestHelpFits: help texts fit a terminal of 80 columns, except for the help of flags with long
// names, which is one short line.
func TestHelpFits(t *testing.T) {
	const maxColumns, maxFlagHelp = 80, 60
	eachVerb(Verbs(labverb.Lab{}), func(c *cobra.Command) {
		for line := range helpLines(t, c) {
			isFlag := strings.HasPrefix(strings.TrimSpace(line), "-")
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > maxColumns && !isFlag {
				t.Errorf("%s --help: %d columns: %s", c.CommandPath(), n, line)
			}
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			_, help := pflag.UnquoteUsage(f)
			if n := utf8.RuneCountInString(help); n > maxFlagHelp || strings.Contains(help, "\n") {
				t.Errorf("%s --%s: %d characters: %s", c.CommandPath(), f.Name, n, help)
			}
		})
	})
}
