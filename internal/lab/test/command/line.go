package command

import (
	"strings"

	"orrery/internal/host"
	"orrery/internal/lab/place"
)

// A line is a command: words, or a text for a shell.
type line struct {
	words []string
	text  string
}

func (l line) empty() bool { return l.text == "" && len(l.words) == 0 }

// read takes a command as it stands in an experiment.
func read(command any) (l line, ok bool) {
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

// in returns the words that run the command in a place, with an environment. The first of a list is
// a program of the layer. In the text of a shell, which is the place's own, the programs that were
// named are aliases for what runs them from the layer.
func (l line) in(p *place.Place, programs, env []string) []string {
	args := append([]string{"/usr/bin/env"}, env...)
	if l.text == "" {
		return append(args, p.Command(l.words[0], l.words[1:]...)...)
	}
	var script strings.Builder
	for _, name := range programs {
		if words := p.Command(name); len(words) != 1 || words[0] != name {
			script.WriteString("alias " + name + "=" + host.Quote(quoted(words)) + "\n")
		}
	}
	return append(args, "/bin/sh", "-c", script.String()+l.text)
}

func quoted(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = host.Quote(w)
	}
	return strings.Join(all, " ")
}
