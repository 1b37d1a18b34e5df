// Package alike merges messages that say the same about several nodes or hosts.
package alike

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"orrery/internal/text/humanize"
	"orrery/internal/text/pattern"
)

// A Message is a text about one node or one host.
type Message struct {
	Kind string // "node" or "host", or "" for a message about neither
	Name string
	Text string // without the name at its beginning
	Full string // as it is shown on its own
}

var subject = pattern.New(`(?s)^(node|host) ([A-Za-z0-9][A-Za-z0-9_.-]*?)(: (.*)| .*)$`)

// Parse returns the message of a text, which is about a node if it begins with "node NAME".
func Parse(text string) Message {
	m := subject().FindStringSubmatch(text)
	switch {
	case m == nil:
		return Message{Text: text, Full: text}
	case m[4] != "":
		return Message{Kind: m[1], Name: m[2], Text: m[4], Full: text}
	}
	return Message{Kind: m[1], Name: m[2], Text: text, Full: text}
}

// listed is the number of names that are listed in any case. If there are more, two are.
const listed = 3

// Merge returns the texts to show for messages: one for each group of those that say the same, where the
// first of them was. In a text that is the same but for the names, NODE or HOST stands for the name.
func Merge(all []Message) []string {
	groups := group(group(each(all), func(m Message) string { return m.Text }), withoutName)
	var texts []string
	for _, g := range groups {
		if len(g.names) == 1 || g.Kind == "" {
			texts = append(texts, g.Full)
			continue
		}
		texts = append(texts, fmt.Sprintf("on %s%s: %s", plural(g.Kind), list(g.names), g.Text))
	}
	return texts
}

// A common message is one of several subjects.
type common struct {
	Message
	names []string
}

func each(all []Message) []common {
	groups := make([]common, len(all))
	for i, m := range all {
		groups[i] = common{m, []string{m.Name}}
	}
	return groups
}

// group merges messages about one node each that have the same key, which becomes their text.
func group(all []common, key func(Message) string) []common {
	var groups []common
	first := map[[2]string]int{} // where a group is, by kind and key
	for _, m := range all {
		if m.Kind == "" || len(m.names) > 1 {
			groups = append(groups, m)
			continue
		}
		id := [2]string{m.Kind, key(m.Message)}
		if at, ok := first[id]; ok && !slices.Contains(groups[at].names, m.Name) {
			g := &groups[at]
			g.names, g.Text = append(g.names, m.Name), id[1]
			continue
		}
		first[id] = len(groups)
		groups = append(groups, m)
	}
	return groups
}

// withoutName returns the text with a placeholder for the name.
func withoutName(m Message) string {
	name := regexp.MustCompile(`(^|[^A-Za-z0-9_-])` + regexp.QuoteMeta(m.Name) + `($|[^A-Za-z0-9_-])`)
	text := m.Text
	for range 2 { // matches that share a character between them need a second look
		text = name.ReplaceAllString(text, "${1}"+strings.ToUpper(m.Kind)+"${2}")
	}
	return text
}

// plural returns what names of hosts begin with. Names of nodes need no such word.
func plural(kind string) string {
	if kind == "host" {
		return "hosts "
	}
	return ""
}

func list(names []string) string {
	if len(names) <= listed {
		return humanize.List(names, listed)
	}
	return humanize.List(names, 2)
}
