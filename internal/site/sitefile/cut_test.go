package sitefile_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/site/sitefile"
)

// lines returns the non-blank lines of a text.
func lines(text string) (all []string) {
	for line := range strings.Lines(text) {
		if said := strings.TrimSpace(line); said != "" {
			all = append(all, said)
		}
	}
	return all
}

// TestRemoveHostCutsOnlyTheHost: RemoveHost removes the host's table and keys, and at most one
// blank line, whatever is around them. It removes no other line.
func TestRemoveHostCutsOnlyTheHost(t *testing.T) {
	dirs := t
	rapid.Check(t, func(t *rapid.T) {
		text, want := "site.name = \"x\"\n", "site.name = \"x\"\n"
		put := func(s string, kept bool) {
			text += s
			if kept {
				want += s
			}
		}
		if rapid.Bool().Draw(t, "as keys") {
			put("host.sv0.address = \"10.8.1.9\"\n", true)
			put("host.gone.address = \"10.8.1.2\"\n", false)
			put("host . \"gone\" . cpus = 2\n", false)
		} else {
			at := rapid.IntRange(0, 3).Draw(t, "at")
			for i := range 4 {
				put(strings.Repeat("\n", rapid.IntRange(0, 2).Draw(t, "blank lines")), true)
				if rapid.Bool().Draw(t, "remark") {
					put(fmt.Sprintf("# before %d\n", i), true)
				}
				if i == at {
					put("[host.gone] # this one\naddress = \"10.8.1.2\"\n", false)
					if rapid.Bool().Draw(t, "gap") {
						put("\n# inside\n", false)
						put("cpus = 2\n", false)
					}
					continue
				}
				put(fmt.Sprintf("[host.sv%d]\naddress = \"10.8.1.1%d\"\n", i, i), true)
			}
		}
		put(strings.Repeat("\n", rapid.IntRange(0, 2).Draw(t, "blank lines at the end")), true)
		put("[image.debian]\nsuite = \"bookworm\"\n", true)
		dir := written(dirs, text)
		e, err := sitefile.RemoveHost(dir, "gone")
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if err := e.Write(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		got := textOf(dirs, dir)
		if g, w := lines(got), lines(want); strings.Join(g, "\n") != strings.Join(w, "\n") {
			t.Fatalf("of\n%s\nis left\n%s\nnot\n%s", text, got, want)
		}
		if blank := strings.Count(want, "\n") - strings.Count(got, "\n"); blank < 0 || blank > 1 {
			t.Fatalf("%d blank lines are gone of\n%q\nwhich is\n%q", blank, text, got)
		}
		if _, ok := e.Site.Host("gone"); ok {
			t.Fatal("the host is still there")
		}
		for _, line := range lines(e.Block) {
			if strings.Contains(want, line) && !strings.HasPrefix(line, "#") {
				t.Fatalf("what is said to go, stays: %s", line)
			}
		}
	})
}
