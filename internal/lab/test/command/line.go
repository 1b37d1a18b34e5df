package command

import (
	"strings"

	"orrery/internal/lab/place"
	"orrery/internal/text/shell"
)

// A line is a command: a list of words, or a shell script.
type line struct {
	words []string
	text  string
}

func (l line) empty() bool { return l.text == "" && len(l.words) == 0 }

// parseLine converts a command from an experiment's file.
func parseLine(command any) (l line, ok bool) {
	switch c := command.(type) {
	case nil:
		return l, true
	case string:
		return line{text: strings.TrimSpace(c)}, true
	case []any:
		for _, w := range c {
			word, isText := w.(string)
			if !isText {
				return line{}, false
			}
			l.words = append(l.words, word)
		}
		return l, true
	}
	return l, false
}

// argv returns the words that run the command in a place with an environment. The first word of a
// list is a program of the layer. A script runs in the place's own shell, with an alias for each of
// the given programs that runs it from the layer.
func (l line) argv(p *place.Place, programs, env []string) []string {
	args := append([]string{"/usr/bin/env"}, env...)
	if l.text == "" {
		return append(args, p.Command(l.words[0], l.words[1:]...)...)
	}
	var script strings.Builder
	for _, name := range programs {
		if words := p.Command(name); len(words) != 1 || words[0] != name {
			script.WriteString("alias " + name + "=" + shell.Quote(shell.Join(words)) + "\n")
		}
	}
	return append(args, "/bin/sh", "-c", script.String()+l.text)
}
