package table

import (
	"fmt"
	"io"

	"orrery/internal/text/humanize"
)

// GroupedTexts collects texts about nodes, and prints a text once if several nodes have the same.
type GroupedTexts struct {
	order []string
	nodes map[string][]string
}

// Add adds a text about a node.
func (t *GroupedTexts) Add(node, text string) {
	if t.nodes == nil {
		t.nodes = map[string][]string{}
	}
	if t.nodes[text] == nil {
		t.order = append(t.order, text)
	}
	t.nodes[text] = append(t.nodes[text], node)
}

// Print prints all texts.
func (t *GroupedTexts) Print(to io.Writer) {
	for _, text := range t.order {
		fmt.Fprintf(to, "%s:\n%s", humanize.List(t.nodes[text], 12), text)
	}
}
