package docs_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxPageWords is what a person can be expected to find their way through.
const maxPageWords = 35000

var (
	// generatedPages are written by tests from code, roles and comments.
	generatedPages = []string{"docs/packages.md", "docs/shipped-roles.md", "docs/promises.md"}
	// generatedPart is the part of a page that a test writes.
	generatedPart = regexp.MustCompile(`(?s)<!-- \w+: generated .*?<!-- \w+: end -->`)
	// oneWord is a word, unlike the bars and signs of tables and code.
	oneWord = regexp.MustCompile(`[\p{L}\p{N}]`)
)

// TestPageWords: the pages for users, without decisions and what is generated, have a limited number
// of words in all, those of examples included.
func TestPageWords(t *testing.T) {
	all := 0
	for _, p := range pages(t) {
		dir := path.Dir(p.path)
		ofUsers := p.path == "README.md" || dir == "docs" || strings.HasPrefix(dir, "docs/") && dir != "docs/decisions"
		if !ofUsers || slices.Contains(generatedPages, p.path) {
			continue
		}
		count := 0
		for _, word := range strings.Fields(generatedPart.ReplaceAllString(p.text, "")) {
			if oneWord.MatchString(word) {
				count++
			}
		}
		t.Logf("%5d %s", count, p.path)
		all += count
	}
	t.Logf("%5d in all", all)
	if all > maxPageWords {
		t.Errorf("the pages have %d words; at most %d: cut what is told twice, move reasons to decisions and how "+
			"packages work to their comments (go test ./docs -run TestPageWords -v lists the pages)", all, maxPageWords)
	}
}
