package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"orrery/internal/cli"
	"orrery/internal/cli/labverb"
)

// TestPages: each verb has a page, and no page names a default that says nothing.
func TestPages(t *testing.T) {
	dir := t.TempDir()
	if err := write(cli.Verbs(labverb.Lab{}), "1.2.3", dir); err != nil {
		t.Fatal(err)
	}
	pages, _ := filepath.Glob(filepath.Join(dir, "man1", "*.1"))
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

// TestLint: a page has a title and a date of its own, its options are a list, and mandoc has
// nothing to say of it.
func TestLint(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1792108800")
	dir := t.TempDir()
	if err := write(cli.Verbs(labverb.Lab{}), "1.2.3", dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"orrery-up.1":     ".TH \"ORRERY-UP\" \"1\" \"2026-10-16\" \"Orrery 1.2.3\" \"\"\n",
		"orrery-site.5":   ".SH NAME\norrery-site \\- the site file",
		"orrery-exit.7":   "130 (Interrupted)",
		"orrery.1":        ".SH FILES\n",
		"orrery-member.1": ".TH \"ORRERY-MEMBER\" \"1\" \"2026-10-16\" \"Orrery 1.2.3\" \"\"\n",
	} {
		text, err := os.ReadFile(filepath.Join(dir, "man"+name[len(name)-1:], name))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s has no %q: %v", name, want, err)
		}
	}
	pages, _ := filepath.Glob(filepath.Join(dir, "man?", "*.?"))
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasSuffix(page, ".1") {
				continue // they have examples
			}
			if strings.HasPrefix(line, "\t") || line == "\n" {
				t.Errorf("%s: %q", filepath.Base(page), line)
			}
		}
	}
	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		t.Skip("mandoc, which checks the pages, is not installed (apt-get install mandoc)")
	}
	if out, err := exec.Command(mandoc, append([]string{"-T", "lint", "-W", "style"},
		pages...)...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("mandoc -T lint: %v\n%s", err, out)
	}
}
