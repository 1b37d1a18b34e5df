package docs_test

import (
	"testing"

	"orrery/docs"
)

// TestSection: a section ends at the next heading of its level, and a comment in an example is no heading.
func TestSection(t *testing.T) {
	const page = "# A\none\n## B\n```\n# no heading\n```\n### C\nthree\n## D\nfour\n"
	for heading, want := range map[string]string{
		"A":          page,
		"B":          "## B\n```\n# no heading\n```\n### C\nthree\n",
		"C":          "### C\nthree\n",
		"D":          "## D\nfour\n",
		"no heading": "",
		"E":          "",
	} {
		if got := docs.Section(page, heading); got != want {
			t.Errorf("%s: %q", heading, got)
		}
	}
	for heading, page := range map[string]string{"Selectors": docs.SiteFile, "Templates": docs.Roles,
		"What a step sees": docs.Roles, "Exit status": docs.Commands, "Environment": docs.Commands} {
		if docs.Section(page, heading) == "" {
			t.Errorf("no section %s, which the program shows", heading)
		}
	}
}
