package docs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/control/draft"
)

const regenerateRoles = "go test ./docs -run TestShippedRoles -update"

// TestShippedRoles: docs/shipped-roles.md has what the files of the roles that ship with Orrery say.
func TestShippedRoles(t *testing.T) {
	all, err := draft.ShippedRoles()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# Roles that ship with Orrery\n\nHow to use them: [roles](roles.md#roles-that-ship-with-orrery). This page is generated from the files in\n" +
		"[roles/](../roles): change them, then run `" + regenerateRoles + "`.\n")
	for _, r := range all {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n", r.Name, r.Description)
		for _, line := range []struct {
			title string
			names []string
		}{{"Packages", r.Packages}, {"Services", r.Services}, {"Files", r.Files}, {"Volumes", r.Volumes},
			{"Secrets, which the site must declare", r.Secrets}} {
			if len(line.names) > 0 {
				fmt.Fprintf(&b, "* %s: `%s`\n", line.title, strings.Join(line.names, "`, `"))
			}
		}
		b.WriteString("\n| parameter | type | default | what it is |\n|---|---|---|---|\n")
		for _, p := range r.Params {
			kind, value, doc := p.Type, "must be set", p.Doc
			if len(p.Values) > 0 {
				kind = "`" + strings.Join(p.Values, "`, `") + "`"
			}
			if !p.Required {
				text, err := json.Marshal(p.Default)
				if err != nil {
					t.Fatal(err)
				}
				value = "`" + string(text) + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", p.Name, kind, value, doc)
		}
	}
	path := filepath.Join(root, "docs/shipped-roles.md")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != b.String() {
		t.Errorf("docs/shipped-roles.md is not what the roles say: %s (%v)", regenerateRoles, err)
	}
}
