// Package graph draws a site as SVG: a box for each host, a card for each node in it, a line for each network.
//
// A network is one coloured line. It comes down at the left from its name, turns into each row of
// cards that has a node of it, and a short line leads from there up to each of these. So no line
// ever crosses a card, however many nodes there are. Layout comes first and knows nothing of SVG;
// drawing only writes down what the layout says. The same site gives the same bytes.
//
// What is drawn of a node comes from the node in part, and is strange speech: it is made visible,
// escaped and cut, and a card lets nothing out of its frame.
package graph

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// A Health is how a node is, as far as a picture can show it.
type Health int

// How a node can be.
const (
	Declared Health = iota // nobody has looked
	Good                   // as declared: healthy, or running with nothing to prove
	Doubtful               // running, but drifted or not proven
	Bad                    // unhealthy, broken, or stopped though it should run
	Off                    // stopped, and so declared
	Absent                 // not there
)

// A Look is what a look at a node has found.
type Look struct {
	Health Health
	Word   string   // how it is, in a word or two: "healthy", "stopped"
	Detail string   // what is wrong; may be empty
	Beside []string // other instances of it, in quarantine: "701 (quarantine), running"
}

// A Picture is what is to be drawn.
type Picture struct {
	Site   *site.Site
	Nodes  []*site.Node    // of the site, in the order in which they are drawn
	Host   string          // of nodes that are not placed; "": they are drawn as not placed
	Seen   map[string]Look // by node; nil: only what is declared is drawn
	Silent []string        // hosts of which nothing is known
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

// look returns what is known of a node.
func (p *Picture) look(n *site.Node) Look {
	if p.Seen == nil {
		return Look{}
	}
	if seen, ok := p.Seen[n.Name]; ok {
		return seen
	}
	return Look{Health: Absent, Word: "absent"}
}

// title names the site.
func (p *Picture) title() string {
	switch {
	case p.Site.Twin != "":
		return fmt.Sprintf("%s, twin %s", p.Site.Name, p.Site.Twin)
	case p.Site.Stage != 0:
		return fmt.Sprintf("%s, release %d", p.Site.Name, p.Site.Stage)
	}
	return p.Site.Name
}

// summary says in a line what is drawn.
func (p *Picture) summary() string {
	text := humanize.Count(len(p.Nodes), "node")
	if p.Seen == nil {
		return text + ", as declared"
	}
	counts := map[string]int{}
	var words []string
	for _, n := range p.Nodes {
		word := p.look(n).Word
		if counts[word]++; !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	for i, word := range words {
		words[i] = fmt.Sprintf("%d %s", counts[word], word)
	}
	return text + ": " + strings.Join(words, ", ")
}

// description says in sentences what the picture shows, for people who cannot see it.
func (p *Picture) description(l *layout) string {
	text := p.summary() + "."
	for _, h := range l.hosts {
		text += fmt.Sprintf(" %s: %s.", h.title, humanize.Count(h.nodes, "node"))
	}
	for _, n := range l.networks {
		text += fmt.Sprintf(" Network %s: %s.", n.network.Name, humanize.Count(n.nodes, "node"))
	}
	for _, n := range p.Nodes {
		if seen := p.look(n); seen.Health != Declared && seen.Health != Good && seen.Health != Off {
			text += fmt.Sprintf(" %s is %s.", n.Name, seen.Word)
		}
	}
	return text
}

// about says all that is known of a node, a line for each thing.
func (p *Picture) about(n *site.Node) string {
	lines := []string{fmt.Sprintf("%s, %d", n.Name, n.FullID())}
	if len(n.Roles) > 0 {
		lines = append(lines, "roles: "+strings.Join(n.Roles, ", "))
	}
	for _, nic := range n.NICs {
		lines = append(lines, nic.Network+": "+address(nic))
	}
	seen := p.look(n)
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
