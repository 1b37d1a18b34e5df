package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"orrery/docs"
	"orrery/internal/cli/labverb"
	"orrery/internal/problem"
)

// TestKeyHelp: help of a key returns its lines of the reference.
func TestKeyHelp(t *testing.T) {
	for name, want := range map[string][]string{
		"network.lan.nat":      {"In site.toml, in [network.NAME]:", "nat     = true", "# masquerade"},
		"network.nat":          {"# masquerade"},
		"node.db.net.data":     {"net.cam", `net.data = "auto"`, "# networks only"},
		"node.vm.size":         {"vm.size"},
		"secret.pw.generate":   {"# generate = 32"},
		"site.id":              {"In site.toml, in [site]:", "id "},
		"volume":               {"[volume.pgdata]", "path ", "mirror", "every", "In role.toml, in each [[volume]]:", "exclusive"},
		"health.within":        {"In role.toml, in each [[health]]:", "within"},
		"apt":                  {"In role.toml, before all tables:", "apt ="},
		"twin.expires":         {"expires"},
		"twin":                 {"[twin]", "members", "expires"},
		"node.portal":          {"[node.portal]", "publish", "net.data"},
		"node":                 {"[node.portal]", "publish", "net.data"},
		"release.701.notes":    {"notes"},
		"file.restarts":        {"restarts", "[] restarts none"},
		"image.cloud.import":   {"In site.toml, in [image.NAME]:", ".qcow2", "# or: import"},
		"nonsense":             nil,
		"network.lan.nonsense": nil,
		"portal.service":       nil,
		"":                     nil,
		"...":                  nil,
		"node.a.b.c.d":         nil,
	} {
		got := keyHelp(name)
		if want == nil && got != "" {
			t.Errorf("%q: %s", name, got)
		}
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("%s lacks %q:\n%s", name, part, got)
			}
		}
	}
	for _, name := range []string{"network.lan.nat", "network.nat", "node.publish", "node.portal.publish"} {
		if got := keyHelp(name); strings.Count(got, "\n") != 3 {
			t.Errorf("%s: not one key:\n%s", name, got)
		}
	}
}

// TestKeysDocumented: each line of the examples belongs to some key or table.
func TestKeysDocumented(t *testing.T) {
	for file, page := range map[string]string{"site.toml": docs.SiteFile, "role.toml": docs.Roles} {
		all := keyEntries(file, page)
		if len(all) < 40 {
			t.Errorf("%s: %d keys", file, len(all))
		}
		for _, e := range all {
			name := strings.Join(slices.Concat(e.Path[:min(e.Table, 1)], e.key()), ".")
			if !e.IsTable() && strings.Contains(e.Text, "#") && !strings.Contains(keyHelp(name), e.Text) {
				t.Errorf("help of %s lacks %s", name, e.Text)
			}
		}
	}
}

// TestHelpVerb: help shows verbs, topics and keys, and says what else there is.
func TestHelpVerb(t *testing.T) {
	for args, want := range map[string]string{
		"help":                 "Bringing the site up and down:",
		"help up":              "orrery up [",
		"help host add":        "orrery host add",
		"help exit":            "| 13 | Reverted |",
		"help selectors":       "# Selectors",
		"help site.toml":       "# The site file",
		"help network.cam.nat": "# masquerade",
	} {
		if out, code := called(args); code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: %d, %s", args, code, out)
		}
	}
	out, code := called("help node.x.colour")
	if code != int(problem.Usage) || !strings.Contains(out, "node.x.colour is not a verb, a topic or a key") {
		t.Errorf("%d: %s", code, out)
	}
}

// called returns what the program prints for a command line, and its exit status.
func called(line string) (out string, status int) {
	var both bytes.Buffer
	status = Run(strings.Fields(line), labverb.Lab{}, strings.NewReader(""), &both, &both)
	return both.String(), status
}
