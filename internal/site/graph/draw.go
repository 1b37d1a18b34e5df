package graph

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// Networks and roles have different colours. Colours repeat if there are too many networks or
// roles, but each is labelled with its name.
const (
	netColours  = 6
	roleColours = 10
)

// style supports light and dark backgrounds, depending on the reader's preference. It repeats
// colours instead of using variables, which some SVG viewers do not support.
const style = `
text { font-family: system-ui, "Segoe UI", "Helvetica Neue", "DejaVu Sans", Arial, sans-serif; fill: #1f2328 }
.paper { fill: #ffffff }
.title { font-size: 18px; font-weight: 600 }
.name { font-size: 13px; font-weight: 600 }
.small { font-size: 11px; fill: #57606a }
.label { font-size: 12px }
.host { fill: #f6f8fa; stroke: #8c959f }
.card { fill: #ffffff; stroke: #8c959f }
.absent .card { stroke-dasharray: 4 3 }
.bad .card { stroke: #cf222e; stroke-width: 2 }
.net { fill: none; stroke-width: 2 }
.mark { fill: none; stroke-width: 2; stroke-linecap: round; stroke-linejoin: round; stroke: #57606a }
.good .mark { stroke: #1a7f37 } .good .word { fill: #1a7f37 }
.doubtful .mark { stroke: #9a6700 } .doubtful .word { fill: #9a6700 }
.bad .mark { stroke: #cf222e } .bad .word { fill: #cf222e }
.n0 { color: #0969da } .n1 { color: #bc4c00 } .n2 { color: #1a7f37 } .n3 { color: #8250df } .n4 { color: #bf3989 }
.n5 { color: #57606a }
.r0 { color: #137775 } .r1 { color: #a371f7 } .r2 { color: #d4a72c } .r3 { color: #cf5b8f } .r4 { color: #4d7c0f }
.r5 { color: #7a5230 } .r6 { color: #5b6ee1 } .r7 { color: #db7b2b } .r8 { color: #2ea5c9 } .r9 { color: #8c959f }
.ink { stroke: currentColor } .dot { fill: currentColor }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.paper { fill: #0d1117 }
.small { fill: #9da7b3 }
.host { fill: #161b22; stroke: #6e7681 }
.card { fill: #0d1117; stroke: #6e7681 }
.bad .card { stroke: #ff7b72 }
.mark { stroke: #9da7b3 }
.good .mark { stroke: #56d364 } .good .word { fill: #56d364 }
.doubtful .mark { stroke: #e3b341 } .doubtful .word { fill: #e3b341 }
.bad .mark { stroke: #ff7b72 } .bad .word { fill: #ff7b72 }
.n0 { color: #58a6ff } .n1 { color: #f0883e } .n2 { color: #56d364 } .n3 { color: #bc8cff } .n4 { color: #f778ba }
.n5 { color: #b1bac4 }
}
`

// marks show health by shape in addition to colour: a tick, an exclamation mark, a cross, a bar, an
// empty ring. They are 10 by 10.
var marks = map[Health]string{
	Good:    "M1 5l3 4 5-8",
	Warning: "M5 1v5M5 9v0",
	Bad:     "M1 1l8 8M9 1l-8 8",
	Off:     "M1 5h8",
	Absent:  "M5 1a4 4 0 1 0 .01 0",
}

var classes = map[Health]string{Declared: "declared", Good: "good", Warning: "doubtful", Bad: "bad", Off: "off",
	Absent: "absent"}

// A drawing writes a layout as SVG.
type drawing struct {
	*bytes.Buffer
	picture *Picture
}

func (d *drawing) put(format string, args ...any) { fmt.Fprintf(d, format+"\n", args...) }

func (d *drawing) begin(l *layout) {
	d.put(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" aria-labelledby="title about">`,
		l.width, l.height)
	d.put(`<title id="title">%s</title>`, escapeLine("Site "+d.picture.title()))
	d.put(`<desc id="about">%s</desc>`, escapeLine(d.picture.description(l)))
	d.put(`<style>%s</style>`, style)
	d.put(`<rect class="paper" width="%d" height="%d"/>`, l.width, l.height)
}

func (d *drawing) end() { d.put(`</svg>`) }

func (d *drawing) heading(l *layout) {
	room := float64(l.width - 2*margin)
	d.put(`<text class="title" x="%d" y="26">%s</text>`, margin, truncateLine(d.picture.title(), 18*1.06, room))
	d.put(`<text class="small" x="%d" y="44">%s</text>`, margin, truncateLine(d.picture.summary(), 11, room))
	for _, n := range l.networks {
		x := margin + len(l.networks)*lineGap + margin/2
		d.put(`<path class="net ink n%d" d="M%d %dH%d"/>`, n.colour%netColours, n.x, n.y, x)
		about := network(n.network)
		d.put(`<text class="label" x="%d" y="%d"><tspan font-weight="600">%s</tspan> %s</text>`, x+6, n.y+4,
			truncateLine(n.network.Name, 12*1.06, room/2), truncateLine(about, 12, room-textWidth(n.network.Name, 12*1.06)-40))
	}
}

// network returns a one-line description of a network.
func network(n *site.Network) string {
	var parts []string
	if n.Subnet.IsValid() {
		parts = append(parts, n.Subnet.String())
	}
	if n.Kind != "" && n.Kind != site.Bridge {
		parts = append(parts, n.Kind)
	}
	if n.Interface != "" {
		parts = append(parts, "on "+n.Interface)
	}
	switch {
	case n.Gateway.IsValid() && n.NAT:
		parts = append(parts, "gateway "+n.Gateway.String()+" with NAT")
	case n.Gateway.IsValid():
		parts = append(parts, "gateway "+n.Gateway.String())
	default:
		parts = append(parts, "no gateway")
	}
	return strings.Join(parts, ", ")
}

func (d *drawing) host(h *hostBox) {
	d.put(`<rect class="host" x="%d" y="%d" width="%d" height="%d" rx="8"/>`, h.x, h.y, h.w, h.h)
	d.put(`<text class="label" x="%d" y="%d">%s</text>`, h.x+padding, h.y+20,
		truncateLine(h.title+": "+humanize.Plural(h.nodes, "node"), 12, float64(h.w-2*padding)))
}

// network draws the trunk and branches of a network. Lines meet where there is a dot, and otherwise
// only cross.
func (d *drawing) network(n *line) {
	if len(n.branches) == 0 {
		return
	}
	d.put(`<g class="n%d"><title>%s</title>`, n.colour%netColours, escapeLine("network "+n.network.Name))
	d.put(`<path class="net ink" d="M%d %dV%d"/>`, n.x, n.y, n.branches[len(n.branches)-1].y)
	for _, b := range n.branches {
		d.put(`<path class="net ink" d="M%d %dH%d"/>`, n.x, b.y, b.stubs[len(b.stubs)-1].x)
		for _, s := range b.stubs {
			d.put(`<path class="net ink" d="M%d %dV%d"/><circle class="dot" cx="%[1]d" cy="%[2]d" r="3"/>`, s.x, b.y, s.top)
		}
	}
	d.put(`</g>`)
}

// card draws a node. The card is an inner svg element, which clips everything to its frame.
func (d *drawing) card(c *card) {
	n, seen := c.node, d.picture.nodeState(c.node)
	d.put(`<svg class="%s" x="%d" y="%d" width="%d" height="%d"><title>%s</title>`, classes[seen.Health], c.x, c.y, c.w,
		c.h, escapeText(d.picture.tooltip(n)))
	d.put(`<rect class="card" x="1" y="1" width="%d" height="%d" rx="5"/>`, c.w-2, c.h-2)
	if c.role >= 0 {
		d.put(`<rect class="dot r%d" x="5" y="8" width="4" height="%d" rx="2"/>`, c.role%roleColours, c.h-16)
	}
	id := fmt.Sprint(n.FullID())
	room := float64(c.w - 16 - 10)
	d.put(`<text class="name" x="16" y="20">%s</text>`, truncateLine(n.Name, 13*1.06, room-textWidth(id, 11)-6))
	d.put(`<text class="small" x="%d" y="20" text-anchor="end">%s</text>`, c.w-10, id)
	d.put(`<text class="small" x="16" y="37">%s</text>`, truncateLine(strings.Join(n.Roles, ", "), 11, room))
	d.state(c, seen, room)
	d.put(`</svg>`)
}

// state draws the last line of a card: the node's state, or its address if no state is known.
func (d *drawing) state(c *card, seen NodeState, room float64) {
	where := ""
	if nics := c.node.NICs; len(nics) > 0 {
		where = address(nics[0])
	}
	if seen.Health == Declared {
		d.put(`<text class="small" x="16" y="54">%s</text>`, truncateLine(where, 11, room))
		return
	}
	d.put(`<path class="mark" transform="translate(16 45)" d="%s"/>`, marks[seen.Health])
	word := seen.Word
	if len(seen.Beside) > 0 {
		word += fmt.Sprintf(" +%d", len(seen.Beside))
	}
	room -= 15
	aside := textWidth(where, 11)
	if textWidth(word, 11)+aside+6 > room { // the state is more important than the address
		where, aside = "", 0
	}
	d.put(`<text class="small word" x="31" y="54">%s</text>`, truncateLine(word, 11, room-aside))
	if where != "" {
		d.put(`<text class="small" x="%d" y="54" text-anchor="end">%s</text>`, c.w-10, escapeLine(where))
	}
}

// legendItemWidth is the width of one role in the legend.
const legendItemWidth = cardWidth + cardGap

func perLine(l *layout) int { return max(1, (l.width-2*margin)/legendItemWidth) }

func legendHeight(l *layout) int {
	if len(l.roles) == 0 {
		return 0
	}
	return (len(l.roles) + perLine(l) - 1) / perLine(l) * labelRow
}

// legend lists the roles with their colours and with the number of nodes that have each as their
// first role.
func (d *drawing) legend(l *layout) {
	for i, role := range l.roles {
		x, y := margin+i%perLine(l)*legendItemWidth, l.legend+i/perLine(l)*labelRow
		count := len(slices.DeleteFunc(slices.Clone(l.cards), func(c *card) bool { return c.role != i }))
		d.put(`<rect class="dot r%d" x="%d" y="%d" width="10" height="10" rx="2"/>`, i%roleColours, x, y)
		d.put(`<text class="small" x="%d" y="%d">%s</text>`, x+16, y+9,
			truncateLine(fmt.Sprintf("%s, %s", role, humanize.Plural(count, "node")), 11, legendItemWidth-24))
	}
}
