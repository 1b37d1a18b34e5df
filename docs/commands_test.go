package docs_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"orrery/internal/cli"
	"orrery/internal/cli/labverb"
)

// A verb is what a command's help says of it.
type verb struct {
	inner []string        // commands within it
	flags map[string]bool // by "-f" and "--flag"; true: with a value
	takes bool            // also arguments that are no command
}

var (
	verbs   = map[string]*verb{}
	verbsMu sync.Mutex
)

var (
	helpFlag = regexp.MustCompile(`^ +(?:(-\w), |    )?(--[\w-]+)( \S+)?(?:  |$)`)
	// takesArguments finds them in the first line of usage: "orrery snapshot [SELECTOR...]".
	takesArguments = regexp.MustCompile(`^\n  orrery [^\n]*[A-Z]{2}`)
	helpCommand    = regexp.MustCompile(`^  ([a-z][\w-]*) +\S`)
)

// help asks the program itself; path is "", "exec" or "image ls".
func help(t *testing.T, path string) *verb {
	t.Helper()
	verbsMu.Lock()
	defer verbsMu.Unlock()
	if v, ok := verbs[path]; ok {
		return v
	}
	var out, errs bytes.Buffer
	line := append(strings.Fields(path), "--help")
	if status := cli.Run(line, labverb.Lab{}, strings.NewReader(""), &out, &errs); status != 0 {
		t.Fatalf("orrery %s --help: status %d: %s", path, status, errs.String())
	}
	v := &verb{flags: map[string]bool{}}
	_, usage, _ := strings.Cut(out.String(), "Usage:")
	v.takes = takesArguments.MatchString(usage)
	for i, line := range strings.Split(usage, "\n") {
		if m := helpFlag.FindStringSubmatch(line); m != nil {
			v.flags[m[1]], v.flags[m[2]] = m[3] != "", m[3] != ""
		} else if m := helpCommand.FindStringSubmatch(line); m != nil && i > 2 && m[1] != "orrery" {
			v.inner = append(v.inner, m[1])
		}
	}
	verbs[path] = v
	return v
}

// TestVerbs compares the table of commands with the verbs of the program.
func TestVerbs(t *testing.T) {
	var listed []string
	for _, row := range table(t, one(t, "docs/commands.md"), "verb | what it does") {
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[0], -1) {
			listed = append(listed, m[1])
		}
	}
	offered := slices.DeleteFunc(slices.Clone(help(t, "").inner),
		func(v string) bool { return v == "completion" })
	if len(offered) < 15 {
		t.Fatalf("the program has only the verbs %v", offered)
	}
	for _, v := range offered {
		if !slices.Contains(listed, v) {
			t.Errorf("docs/commands.md does not have the verb %s", v)
		}
	}
	for _, v := range listed {
		if !slices.Contains(offered, v) {
			t.Errorf("docs/commands.md has %s, which is no verb", v)
		}
	}
}

var (
	inline  = regexp.MustCompile("`((?:sudo )?(?:\\S*/)?orrery [^`]+)`")
	begins  = regexp.MustCompile(`^(?:\$ |exec |sudo )*(?:\S*/)?orrery(?: |$)`)
	foreign = regexp.MustCompile(`\|\||&&|[|;>]`)
)

// TestCommandLines sees that every command line in the documents has verbs and flags that the program has.
func TestCommandLines(t *testing.T) {
	checked := 0
	for _, p := range pages(t) {
		var lines []string
		for _, b := range p.blocks {
			if !strings.HasPrefix(b.info, "toml") {
				lines = append(lines, b.lines...)
			}
		}
		for _, m := range inline.FindAllStringSubmatch(prose(p), -1) {
			lines = append(lines, m[1])
		}
		for _, line := range lines {
			for _, part := range apart(line) {
				part = strings.TrimSpace(part)
				if !begins.MatchString(part) {
					continue
				}
				words, err := split(begins.ReplaceAllString(part, ""))
				if err == nil {
					err = wrong(t, words)
				}
				if err != nil {
					t.Errorf("%s: %s: %v", p.path, part, err)
				}
				checked++
			}
		}
	}
	if checked < 40 {
		t.Errorf("only %d command lines were found", checked)
	}
}

// apart cuts a line of shell at what is between two commands, though not within quotes.
func apart(line string) []string {
	if !strings.Contains(line, "'") {
		return foreign.Split(line, -1)
	}
	return []string{line}
}

// split splits a line into words as a shell does, as far as documents need it. A word of "…" or "#"
// ends the line.
func split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	quote, begun := rune(0), false
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			quote, begun = c, true
		case c == ' ':
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		case c == '#' && !begun:
			return words, nil
		default:
			word.WriteRune(c)
			begun = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote is not closed")
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

// wrong tells what the program would not know of a command line. It runs nothing.
func wrong(t *testing.T, words []string) error {
	path := ""
	v := help(t, path)
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w == "--" || w == "…":
			return nil
		case strings.HasPrefix(w, "-"):
			name, _, given := strings.Cut(w, "=")
			value, known := v.flags[name]
			if !known && name != "--help" {
				return fmt.Errorf("%q has no flag %s", path, name)
			}
			if value && !given {
				i++
			}
		case len(v.inner) > 0:
			if !slices.Contains(v.inner, w) && v.takes {
				v = &verb{flags: v.flags}
				continue
			}
			if !slices.Contains(v.inner, w) {
				return fmt.Errorf("%q is no verb", strings.TrimSpace(path+" "+w))
			}
			path = strings.TrimSpace(path + " " + w)
			v = help(t, path)
			if ofTwin, ok := strings.CutPrefix(path, "twin "); ok && slices.Contains(help(t, "").inner, ofTwin) {
				v = help(t, ofTwin) // the same verb, for a twin that is named first
			}
		}
	}
	return nil
}
