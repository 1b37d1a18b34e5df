package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"orrery/internal/cli"
)

// TestPages: each verb has a page, and no page names a default that says nothing.
func TestPages(t *testing.T) {
	dir := t.TempDir()
	if err := write(cli.Verbs(), "1.2.3", dir); err != nil {
		t.Fatal(err)
	}
	pages, _ := filepath.Glob(filepath.Join(dir, "*.1"))
	if len(pages) < 50 {
		t.Errorf("there are %d manual pages", len(pages))
	}
	empty := regexp.MustCompile(`--[a-z-]+\\fP(=(""|\[\]|0s?)?|\[=false\])\n`)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if empty.MatchString(line) {
				t.Errorf("%s: %s", filepath.Base(page), line)
			}
		}
	}
}
