package render

import (
	"strings"
	"testing"
)

// TestExplain: errors of templates are in the words of templates, not of Go, and name what was meant.
func TestExplain(t *testing.T) {
	for template, want := range map[string]string{
		"{{.Site.Namee}}":            `.Site.Namee: there is no field Namee (did you mean "Name"?)`,
		"{{.Nonsense}}":              `.Nonsense: there is no "Nonsense" (docs/roles.md`,
		"{{.Node.Addresss}}":         `.Node.Addresss: there is no field Addresss (did you mean "Addresses"?)`,
		"{{.Env.NONE}}":              `.Env.NONE: there is no "NONE" (docs/roles.md`,
		"{{range .Nodes}}":           "has no {{end}} (add {{end}} where it should end)",
		"{{end}}":                    "this {{end}} ends nothing (remove it",
		"{{addresss .Node \"cam\"}}": `there is no function addresss (did you mean "address"?)`,
		"{{nosuch 1}}":               "there is no function nosuch (docs/roles.md",
		`{{node "nobody"}}`:          `template: node: no node is called "nobody" (`,
		`{{address .Node}}`:          "template: address needs 2 arguments, not 1 (",
		"{{count1 2}}":               "there is no function count1",
	} {
		_, err := fill(t, template, "receptor1", Placeholder)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", template, err, want)
			continue
		}
		for _, word := range []string{"executing", "interface {}", "render.", "template: 1"} {
			if strings.Contains(err.Error(), word) {
				t.Errorf("%s: %v", template, err)
			}
		}
	}
}
