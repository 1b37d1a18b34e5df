package cli

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestEmptyDefaults: no help text has a meaningless default value. (For manual pages:
// packaging/man.)
func TestEmptyDefaults(t *testing.T) {
	root := Verbs(nil)
	empty := regexp.MustCompile(`\(default(:? *| "")\)|\(default \[?\]?\)`)
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		var out bytes.Buffer
		c.SetOut(&out)
		if err := c.Help(); err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(out.String()) {
			if empty.MatchString(line) || strings.Count(line, "(default") > 1 {
				t.Errorf("%s --help: %s", c.CommandPath(), line)
			}
		}
		for _, inner := range c.Commands() {
			each(inner)
		}
	}
	each(root)
}
