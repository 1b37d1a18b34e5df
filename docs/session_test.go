package docs_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"orrery/test/need"
)

// varies matches what is not the same each time: how long steps took, times, who it was and where.
var varies = regexp.MustCompile(
	`\(\d+\.\d\d s\)|in \d+ms|\d\d:\d\d:\d\d|\d{4}-\d\d-\d\d \d\d:\d\d|healthy \d+ s ago|\bada\b|\[\d+/\d+\]|` +
		`^\d+ Debian packages|-> \S+$`)

// TestSession makes the site of the tutorial on releases, under another name and at other addresses,
// and does with it what the page does, in order.
func TestSession(t *testing.T) {
	need.Integration(t)
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	run(t, ".", nil, "go", "build", "-o", filepath.Join(bin, "orrery"), "../cmd/orrery")
	other := strings.NewReplacer("karoo", "it-session", "10.8.70.", "10.99.125.")
	site := filepath.Join(dir, "site")
	p := one(t, "docs/tutorials/release.md")
	siteOf(t, site, p, other)
	env := grounds(t, bin)
	end := func() { takeDown(t, site, env, "it-session") }
	end() // what a run that was killed has left
	t.Cleanup(end)
	commands := 0
	for _, b := range p.blocks {
		if b.info != "console" {
			continue
		}
		for _, step := range steps(b) {
			commands++
			printed := run(t, site, env, "sh", "-c", other.Replace(step.command))
			want := ""
			for line := range strings.Lines(step.prints) {
				want += other.Replace(varies.ReplaceAllString(strings.TrimSpace(line), "…")) + "\n"
			}
			if miss := missing(printed, want); miss != "" {
				t.Fatalf("$ %s\ndoes not print\n%s\nbut\n%s", step.command, miss, printed)
			}
		}
	}
	if commands < 12 {
		t.Errorf("the session has only %d commands", commands)
	}
}

var roleFile = regexp.MustCompile(`^# (roles/[a-z0-9-]+)/role\.toml$`)

// siteOf makes the site directory that the blocks of a page are.
func siteOf(t *testing.T, dir string, p *page, other *strings.Replacer) {
	t.Helper()
	for _, b := range p.blocks {
		if b.info != "toml" {
			continue
		}
		put(t, dir, fileOf(b), other.Replace(b.text()))
	}
}

// fileOf returns which file of a site directory a block is.
func fileOf(b block) string {
	if m := roleFile.FindStringSubmatch(b.lines[0]); m != nil {
		return m[1] + "/role.toml"
	}
	return "site.toml"
}
