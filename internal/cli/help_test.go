package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"orrery/internal/control"

	"github.com/spf13/cobra"
)

// TestEmptyDefaults: no help text and no manual page tells of a default that is none.
func TestEmptyDefaults(t *testing.T) {
	root := (&app{Session: control.Session{Release: control.Live}}).root()
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
	dir := t.TempDir()
	man, _, err := root.Find([]string{"man"})
	if err != nil {
		t.Fatal(err)
	}
	if err := man.RunE(man, []string{dir}); err != nil {
		t.Fatal(err)
	}
	pages, _ := filepath.Glob(filepath.Join(dir, "*.1"))
	if len(pages) < 50 {
		t.Errorf("there are %d manual pages", len(pages))
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if regexp.MustCompile(`--[a-z-]+\\fP(=(""|\[\]|0s?)?|\[=false\])\n`).MatchString(line) {
				t.Errorf("%s: %s", filepath.Base(page), line)
			}
		}
	}
}
