package docs_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
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
	inner []command       // within it
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
	helpCommand    = regexp.MustCompile(`^  ([a-z][\w-]*) +(\S.*)`)
	helpGroup      = regexp.MustCompile(`^([A-Z].*):$`)
)

// has reports whether the help lists a command.
func (v *verb) has(name string) bool {
	return slices.ContainsFunc(v.inner, func(c command) bool { return c.name == name })
}

// A command is a line in the help of another.
type command struct {
	name, about string
	group       string // its heading
}

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
	heading := ""
	for i, line := range strings.Split(usage, "\n") {
		if m := helpGroup.FindStringSubmatch(line); m != nil {
			heading = m[1]
		} else if m := helpFlag.FindStringSubmatch(line); m != nil {
			v.flags[m[1]], v.flags[m[2]] = m[3] != "", m[3] != ""
		} else if m := helpCommand.FindStringSubmatch(line); m != nil && i > 2 && heading != "Examples" {
			v.inner = append(v.inner, command{m[1], m[2], heading})
		}
	}
	verbs[path] = v
	return v
}

// readOn are the pages that say more about a command.
var readOn = map[string]string{
	"init": "tutorials/first-site.md", "role": "roles.md", "role ls": "shipped-roles.md",
	"role fetch": "roles.md#shared-roles", "schema": "site-file.md#in-an-editor", "query": "site-file.md#selectors",
	"query vars": "site-file.md#variables", "ssh-config": "howto/ssh-ansible.md", "import": "howto/move-in.md",
	"plan": "runs.md#before-a-change", "up": "runs.md", "down": "state.md#what-down-leaves",
	"move": "hosts.md#moving-nodes", "renew": "machines.md",
	"resume": "runs.md#after-a-reboot", "release": "releases.md", "stage": "releases.md",
	"switch": "releases.md#what-a-switch-does", "confirm": "releases.md#trials",
	"release trust": "releases.md#over-several-hosts", "twin": "twins.md", "backup": "backup.md",
	"restore": "backup.md#restore", "status": "drift.md", "console": "machines.md", "screen": "machines.md",
	"service": "site-file.md#services", "snapshot": "volumes.md#snapshots", "volume": "volumes.md",
	"volume mirror": "volumes.md#mirrors", "secret": "site-file.md#rotate-a-secret",
	"journal": "runs.md#what-a-run-prints-and-where-it-is-kept", "ci": "ci.md", "lab": "lab.md",
	"mirror": "mirror.md", "host": "hosts.md", "rebalance": "hosts.md#hosts-come-and-go",
	"rehearse": "hosts.md#rehearse", "names": "site-file.md#names-on-the-host", "exec": "#many-nodes-at-once",
}

// TestVerbs: the tables in docs/commands.md have what the help of each command says.
func TestVerbs(t *testing.T) {
	const begin, end = "see docs/commands_test.go -->\n", "<!-- verbs: end -->"
	var b strings.Builder
	unused := maps.Clone(readOn)
	count, group := 0, ""
	row := func(path, about string) {
		name := "`" + path + "`"
		if page := readOn[path]; page != "" {
			name = "[" + name + "](" + page + ")"
			delete(unused, path)
		}
		fmt.Fprintf(&b, "| %s | %s |\n", name, strings.ReplaceAll(about, "|", `\|`))
		count++
	}
	for _, c := range help(t, "").inner {
		if c.name == "completion" {
			continue
		}
		if c.group != group {
			group = c.group
			fmt.Fprintf(&b, "\n| %s | |\n|---|---|\n", strings.ToLower(c.group[:1])+c.group[1:])
		}
		row(c.name, c.about)
		for _, in := range help(t, c.name).inner {
			row(c.name+" "+in.name, in.about)
		}
	}
	if count < 50 {
		t.Fatalf("the program has only %d commands", count)
	}
	for path := range unused {
		t.Errorf("readOn has %s, which is no command", path)
	}
	text := one(t, "docs/commands.md").text
	before, rest, ok := strings.Cut(text, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("docs/commands.md has no place for the commands")
	}
	want := before + begin + b.String() + "\n" + end + after
	if *update && !t.Failed() {
		if err := os.WriteFile(filepath.Join(root, "docs/commands.md"), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text != want {
		t.Error("docs/commands.md is not what the help says: go test ./docs -run TestVerbs -update")
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
			if !v.has(w) && v.takes {
				v = &verb{flags: v.flags}
				continue
			}
			if !v.has(w) {
				return fmt.Errorf("%q is no verb", strings.TrimSpace(path+" "+w))
			}
			path = strings.TrimSpace(path + " " + w)
			v = help(t, path)
			if ofTwin, ok := strings.CutPrefix(path, "twin "); ok && help(t, "").has(ofTwin) {
				v = help(t, ofTwin) // the same verb, for a twin that is named first
			}
		}
	}
	return nil
}
