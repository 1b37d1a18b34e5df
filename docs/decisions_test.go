package docs_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// maxDecision is how many words a decision may have below its title and status, unless it is historic.
const maxDecision = 350

var (
	statusHead = regexp.MustCompile(`(?s)\A\*Status: (.*?)\.\*\n\n`)
	statusWord = regexp.MustCompile(`^(accepted|historic|accepted; superseded in part by .+|superseded by .+)$`)
	linkTarget = regexp.MustCompile(`\]\([^)]*\)`)
)

// TestDecisions: the index has every decision with its status, and a decision in force is short.
func TestDecisions(t *testing.T) {
	rows := table(t, one(t, "docs/decisions/README.md"), "no.")
	decisions := map[string]*page{}
	for _, p := range pages(t) {
		if dir, name := filepath.Split(p.path); dir == "docs/decisions/" && name != "README.md" {
			decisions[name] = p
		}
	}
	last := ""
	for _, row := range rows {
		m := regexp.MustCompile(`^\[(\d+)\]\(((\d{4})-[^)]+\.md)\)$`).FindStringSubmatch(row[0])
		if m == nil || len(row) != 3 || m[3] != strings.Repeat("0", 4-len(m[1]))+m[1] {
			t.Errorf("this is no line of a decision: %v", row)
			continue
		}
		p, ok := decisions[m[2]]
		if !ok || m[2] <= last {
			t.Errorf("decision %s has no file, or stands in the wrong place", m[1])
			continue
		}
		last = m[2]
		delete(decisions, m[2])
		if !strings.HasSuffix(row[1], ".") || strings.Count(row[1], " ") > 24 {
			t.Errorf("decision %s: the index should have one sentence of at most 25 words: %s", m[1], row[1])
		}
		checkDecision(t, m[1], row[2], p.text)
	}
	for name := range decisions {
		t.Errorf("docs/decisions/README.md does not list %s", name)
	}
}

// checkDecision compares the text of a decision with its status in the index.
func checkDecision(t *testing.T, number, status, text string) {
	t.Helper()
	if !statusWord.MatchString(status) {
		t.Errorf("decision %s: its status is none: %s", number, status)
	}
	title, text, _ := strings.Cut(text, "\n\n")
	if !strings.HasPrefix(title, "# "+number+". ") {
		t.Errorf("decision %s: its title is %q", number, title)
	}
	head := statusHead.FindStringSubmatch(text)
	if head == nil && status != "accepted" {
		t.Errorf("decision %s: its head does not say that it is %s", number, status)
	}
	if head != nil {
		text = strings.TrimPrefix(text, head[0])
		for _, link := range linkTarget.FindAllString(status, -1) {
			if !strings.Contains(head[1], link) {
				t.Errorf("decision %s: its head does not name %s", number, link)
			}
		}
		if said, _, _ := strings.Cut(status, " by "); !strings.HasPrefix(head[1], said) {
			t.Errorf("decision %s: its head says %q, the index %q", number, head[1], status)
		}
	}
	words := len(strings.Fields(linkTarget.ReplaceAllString(text, "]")))
	if words > maxDecision && status != "historic" {
		t.Errorf("decision %s has %d words; at most %d: shorten it", number, words, maxDecision)
	}
}
