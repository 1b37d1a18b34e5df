package main

import (
	_ "embed"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"orrery/internal/text/pattern"
)

// member is the page of orrery-member, which is no verb.
//
//go:embed orrery-member.1
var member string

// write writes a page for a verb and for each verb below it, that of orrery-member, and those of the
// topics, each into the folder of its section below share.
func write(root *cobra.Command, version, share string) error {
	for _, section := range []string{"man1", "man5", "man7"} {
		if err := os.MkdirAll(filepath.Join(share, section), 0o755); err != nil {
			return err
		}
	}
	dir := filepath.Join(share, "man1")
	root.DisableAutoGenTag = true
	root.InitDefaultCompletionCmd() // otherwise only a run of the program adds it
	made := made()
	source := "Orrery " + version
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: source, Date: &made}, dir); err != nil {
		return err
	}
	date := made.Format(time.DateOnly)
	text := strings.NewReplacer("@DATE@", date, "@SOURCE@", source).Replace(member)
	if err := os.WriteFile(filepath.Join(dir, "orrery-member.1"), []byte(text), 0o644); err != nil {
		return err
	}
	if err := writeTopics(source, date, share); err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(dir, "orrery*.1"))
	for _, page := range pages {
		err = errors.Join(err, tidy(page, date))
	}
	return err
}

// made returns the date of the pages: that of the sources, if whoever builds says it
// (SOURCE_DATE_EPOCH), or today's.
func made() time.Time {
	if seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		return time.Unix(seconds, 0).UTC()
	}
	return time.Now().UTC()
}

// tidy makes of a page what mandoc -T lint has nothing to say of. Defaults that say nothing go:
// empty, zero or false; --help does not show them either.
func tidy(page, date string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	text = emptyDefault().ReplaceAll(text, []byte("$1"))
	text = heading().ReplaceAll(text, []byte("${1}"+date+"${2}"))
	text = option().ReplaceAll(text, []byte("$1.TP\n$2\n"))
	text = emptyLines().ReplaceAll(text, []byte("\n"))
	if filepath.Base(page) == "orrery.1" {
		text = []byte(generalSections(string(text)))
	}
	return os.WriteFile(page, []byte(wrapped(string(text))), 0o644)
}

var (
	emptyDefault = pattern.New(`(?m)^((?:\\fB-\w\\fP, )?\\fB--[a-z-]+\\fP)(?:=(?:""|\[\]|0s?)?|\[=false\])$`)
	heading      = pattern.New(`(?m)^(\.TH "[^"]*" "[^"]*" ")[^"]*(")`)
	option       = pattern.New(`(?m)^(\.SH OPTIONS.*\n|)(?:\.PP\n)?(\\fB-.*)\n\t`)
	emptyLines   = pattern.New(`\n(?:[ \t]*\n)+`)
)

// maxColumns is how long lines of a page are, which the reader's program fills anew. mandoc wants
// 80 at most, and counts a character that is not ASCII as the escape that stands for it.
const maxColumns = 72

// wrapped breaks long lines of text between words.
func wrapped(page string) string {
	var out strings.Builder
	literal := false
	for line := range strings.Lines(page) {
		literal = startsWithAny(line, ".EX", ".nf", ".TS") || literal && !startsWithAny(line, ".EE", ".fi", ".TE")
		for !literal && len(line) > maxColumns+1 && line[0] != '.' {
			at := strings.LastIndexByte(line[:maxColumns+1], ' ')
			for at > 0 && strings.ContainsAny(line[at+1:at+2], ".'") { // a line that begins so is a command
				at = strings.LastIndexByte(line[:at], ' ')
			}
			if at <= 0 {
				break
			}
			out.WriteString(line[:at] + "\n")
			line = line[at+1:]
		}
		out.WriteString(line)
	}
	return out.String()
}

func startsWithAny(line string, beginnings ...string) bool {
	return slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(line, b) })
}
