package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"orrery/internal/cli/labverb"
)

// TestExamples: each verb has an example, which calls it with flags and arguments that it knows.
func TestExamples(t *testing.T) {
	root := Verbs(labverb.Lab{})
	eachVerb(root, func(c *cobra.Command) {
		if c.Hidden || c.HasParent() && c.Parent().Hidden || c.HasSubCommands() || c.Name() == "spead" {
			return
		}
		if c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		calls := false
		for line := range strings.Lines(c.Example) {
			_, after, ok := strings.Cut(line, "orrery ")
			if !strings.HasPrefix(line, "  ") || len(strings.TrimRight(line, "\n")) > 80 {
				t.Errorf("%s: %q is not indented by two columns, or longer than 80", c.CommandPath(), line)
			}
			if !ok {
				continue
			}
			for _, end := range []string{" #", " | ", " > ", " && "} {
				after, _, _ = strings.Cut(after, end)
			}
			words := strings.Fields(strings.ReplaceAll(after, "'", ""))
			found, rest, err := root.Find(words)
			if err != nil {
				t.Errorf("%s: %s: %v", c.CommandPath(), line, err)
				continue
			}
			calls = calls || found == c
			if found != c || found.DisableFlagParsing || strings.Contains(after, `"$@"`) {
				continue
			}
			if err := found.ParseFlags(rest); err != nil {
				t.Errorf("%s: %s: %v", c.CommandPath(), line, err)
			} else if err := found.ValidateArgs(found.Flags().Args()); err != nil {
				t.Errorf("%s: %s: %v", c.CommandPath(), line, err)
			}
		}
		if c.Example != "" && !calls {
			t.Errorf("%s: its example does not call it:\n%s", c.CommandPath(), c.Example)
		}
	})
}

// TestSynonyms: for a verb of another tool, the program names its own verb.
func TestSynonyms(t *testing.T) {
	root := Verbs(labverb.Lab{})
	for _, word := range []string{"ps", "list", "ssh", "rm", "apply", "validate", "top", "events", "log", "clone", "run"} {
		if found, _, err := root.Find([]string{word}); err == nil && found != root {
			t.Errorf("%s is a verb", word)
		}
		out, status := called(word)
		_, named, ok := strings.Cut(strings.TrimSpace(out), "(orrery calls it orrery ")
		if status != 2 || !ok {
			t.Errorf("%s: %d, %s", word, status, out)
			continue
		}
		if found, rest, err := root.Find(strings.Fields(strings.TrimSuffix(named, ")"))); err != nil || found == root ||
			len(rest) > 0 {
			t.Errorf("%s: there is no %s", word, named)
		}
	}
	if out, _ := called("stauts"); !strings.Contains(out, `unknown verb "stauts" (did you mean status?)`) {
		t.Error(out)
	}
}
