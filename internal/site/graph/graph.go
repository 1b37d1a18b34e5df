// Package graph draws a site as SVG: a box per host, a card per node and a line per network.
//
// A network is one coloured line. It runs down the left side from its name and turns into each row
// of cards that contains one of its nodes. A short line leads from there up to each of these nodes.
// Therefore no line crosses a card, however many nodes there are. The layout is computed first and
// does not depend on SVG. The drawing only writes the layout. The same site results in the same
// bytes.
//
// Part of a card's text comes from the node itself and is not trusted. It is sanitized, escaped and
// truncated, and a card clips everything to its frame.
package graph

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// A Health is the state of a node, as far as a picture can show it.
type Health int

// The states of a node.
const (
	Declared Health = iota // state not queried
	Good                   // as declared: healthy, or running without a health check
	Warning                // running, but drifted or without a known result of its health checks
	Bad                    // unhealthy, broken, or stopped although it should run
	Off                    // stopped, as declared
	Absent                 // does not exist
)

// A NodeState is the observed state of a node.
type NodeState struct {
	Health Health
	Word   string   // state in a word or two: "healthy", "stopped"
	Detail string   // what is wrong, or ""
	Beside []string // other instances of the node in quarantine: "701 (quarantine), running"
}

// A Picture is the input of Draw.
type Picture struct {
	Site   *site.Site
	Nodes  []*site.Node         // of the site, in drawing order
	Host   string               // host of nodes that are not placed, or "" to draw them as not placed
	Seen   map[string]NodeState // by node, or nil to draw only what is declared
	Silent []string             // hosts that did not answer
}

// Draw returns the picture as SVG.
func Draw(p Picture) []byte {
	l := p.layout()
	var b bytes.Buffer
	d := &drawing{Buffer: &b, picture: &p}
	d.begin(l)
	d.heading(l)
	for _, h := range l.hosts {
		d.host(h)
	}
	for _, n := range l.networks {
		d.network(n)
	}
	for _, c := range l.cards {
		d.card(c)
	}
	d.legend(l)
	d.end()
	return b.Bytes()
}

// nodeState returns the observed state of a node.
func (p *Picture) nodeState(n *site.Node) NodeState {
	if p.Seen == nil {
		return NodeState{}
	}
	if seen, ok := p.Seen[n.Name]; ok {
		return seen
	}
	return NodeState{Health: Absent, Word: "absent"}
}

// title returns the name of the site, with its twin or release.
func (p *Picture) title() string {
	switch {
	case p.Site.Twin != "":
		return fmt.Sprintf("%s, twin %s", p.Site.Name, p.Site.Twin)
	case p.Site.Stage != 0:
		return fmt.Sprintf("%s, release %d", p.Site.Name, p.Site.Stage)
	}
	return p.Site.Name
}

// summary returns a one-line summary of the picture.
func (p *Picture) summary() string {
	text := humanize.Plural(len(p.Nodes), "node")
	if p.Seen == nil {
		return text + ", as declared"
	}
	counts := map[string]int{}
	var words []string
	for _, n := range p.Nodes {
		word := p.nodeState(n).Word
		if counts[word]++; !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	for i, word := range words {
		words[i] = fmt.Sprintf("%d %s", counts[word], word)
	}
	return text + ": " + strings.Join(words, ", ")
}

// description returns the content of the picture in sentences, for people who cannot see it.
func (p *Picture) description(l *layout) string {
	text := p.summary() + "."
	for _, h := range l.hosts {
		text += fmt.Sprintf(" %s: %s.", h.title, humanize.Plural(h.nodes, "node"))
	}
	for _, n := range l.networks {
		text += fmt.Sprintf(" Network %s: %s.", n.network.Name, humanize.Plural(n.nodes, "node"))
	}
	for _, n := range p.Nodes {
		if seen := p.nodeState(n); seen.Health != Declared && seen.Health != Good && seen.Health != Off {
			text += fmt.Sprintf(" %s is %s.", n.Name, seen.Word)
		}
	}
	return text
}

// tooltip returns everything that is known about a node, one item per line.
func (p *Picture) tooltip(n *site.Node) string {
	lines := []string{fmt.Sprintf("%s, %d", n.Name, n.FullID())}
	if len(n.Roles) > 0 {
		lines = append(lines, "roles: "+strings.Join(n.Roles, ", "))
	}
	for _, nic := range n.NICs {
		lines = append(lines, nic.Network+": "+address(nic))
	}
	seen := p.nodeState(n)
	for _, more := range append([]string{seen.Word, seen.Detail}, seen.Beside...) {
		if more != "" {
			lines = append(lines, more)
		}
	}
	return strings.Join(lines, "\n")
}

func address(nic site.NIC) string {
	if nic.Address.IsValid() {
		return nic.Address.String()
	}
	return "no address"
}
