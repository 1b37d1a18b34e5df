package graph

import (
	"math"
	"slices"

	"orrery/internal/site"
)

// Sizes, in pixels.
const (
	margin     = 20
	lineGap    = 9 // between two parallel networks
	labelRow   = 20
	headRow    = 56 // title and summary
	hostHead   = 30
	padding    = 14 // inside the box of a host
	cardWidth  = 176
	cardHeight = 66
	cardGap    = 14
	minCols    = 3
	maxCols    = 16
)

// A box is a rectangle in the picture.
type box struct{ x, y, w, h int }

// A layout has the positions of everything.
type layout struct {
	width, height int
	hosts         []*hostBox
	networks      []*line
	cards         []*card
	roles         []string // determine the colours of cards
	legend        int      // top of the legend
}

// A hostBox is the box of a host with its nodes.
type hostBox struct {
	box
	title string
	nodes int
}

// A card is the rectangle of a node.
type card struct {
	box
	node *site.Node
	role int // index in layout.roles, or -1 if the node has no role
}

// A line is a network: a trunk on the left and a branch into each row of cards with one of its
// nodes.
type line struct {
	network  *site.Network
	colour   int
	x, y     int // top of the trunk, next to the network's name
	nodes    int
	branches []branch
}

// A branch runs below a row of cards.
type branch struct {
	y     int
	stubs []stub
}

// A stub leads from a branch up to a card.
type stub struct{ x, top int }

// layout computes the positions of everything in the picture.
func (p *Picture) layout() *layout {
	l := &layout{}
	for _, n := range p.Nodes {
		if len(n.Roles) > 0 && !slices.Contains(l.roles, n.Roles[0]) {
			l.roles = append(l.roles, n.Roles[0])
		}
	}
	y := headRow
	for i := range p.Site.Networks {
		n := &line{network: &p.Site.Networks[i], colour: i, x: margin + i*lineGap, y: y + labelRow/2}
		l.networks = append(l.networks, n)
		y += labelRow
	}
	y += margin / 2
	left := margin + len(l.networks)*lineGap + margin/2
	groups := p.byHost()
	columns := minCols
	for _, g := range groups {
		columns = max(columns, columnsFor(len(g.nodes)))
	}
	inside := columns*cardWidth + (columns-1)*cardGap
	l.width = left + inside + 2*padding + margin
	for _, g := range groups {
		h := &hostBox{title: g.title, nodes: len(g.nodes), box: box{left, y, inside + 2*padding, 0}}
		y += hostHead
		for row := range slices.Chunk(g.nodes, columns) {
			y = l.row(row, left+padding, y)
		}
		h.h = y - h.y
		l.hosts = append(l.hosts, h)
		y += margin
	}
	l.legend = y
	l.height = y + legendHeight(l) + margin/2
	return l
}

// columnsFor returns the number of cards per row. A few cards have one row. More cards have about
// as many rows as columns.
func columnsFor(nodes int) int {
	if nodes <= 4 {
		return nodes
	}
	return min(maxCols, int(math.Ceil(math.Sqrt(float64(nodes)))))
}

// row places a row of cards and the branches below it. It returns the top of the next row.
func (l *layout) row(nodes []*site.Node, x, y int) int {
	below := map[string]*branch{}
	var used []*line
	for _, n := range l.networks {
		joined := slices.ContainsFunc(nodes, func(of *site.Node) bool { return isOnNetwork(of, n.network.Name) })
		if joined {
			used = append(used, n)
			below[n.network.Name] = &branch{y: y + cardHeight + lineGap*len(used)}
		}
	}
	for _, n := range nodes {
		role := -1
		if len(n.Roles) > 0 {
			role = slices.Index(l.roles, n.Roles[0])
		}
		l.cards = append(l.cards, &card{box: box{x, y, cardWidth, cardHeight}, node: n, role: role})
		var on []*line
		for _, each := range used {
			if isOnNetwork(n, each.network.Name) {
				on = append(on, each)
			}
		}
		for i, each := range on { // distribute the stubs over the width of the card
			b := below[each.network.Name]
			b.stubs = append(b.stubs, stub{x: x + cardWidth*(i+1)/(len(on)+1), top: y + cardHeight})
			each.nodes++
		}
		x += cardWidth + cardGap
	}
	for _, each := range used {
		each.branches = append(each.branches, *below[each.network.Name])
	}
	return y + cardHeight + lineGap*len(used) + padding
}

func isOnNetwork(n *site.Node, network string) bool {
	return slices.ContainsFunc(n.NICs, func(nic site.NIC) bool { return nic.Network == network })
}

// A group has the nodes of one host.
type group struct {
	title string
	nodes []*site.Node
}

// byHost returns the hosts in the order of their declaration, each with its nodes. Nodes that are
// not placed come last.
func (p *Picture) byHost() []group {
	var all []group
	rest := group{title: "not placed yet"}
	if len(p.Silent) > 0 {
		rest.title = "not placed yet, or on an unreachable host"
	}
	if p.Host != "" {
		rest.title = "host " + p.Host
	}
	at := map[string]int{}
	for _, h := range p.Site.Hosts {
		at[h.Name] = len(all)
		all = append(all, group{title: p.hostTitle(h)})
	}
	for _, n := range p.Nodes {
		name := n.Host
		if name == "" {
			name = p.Host
		}
		if i, ok := at[name]; ok {
			all[i].nodes = append(all[i].nodes, n)
		} else {
			rest.nodes = append(rest.nodes, n)
		}
	}
	if len(rest.nodes) > 0 || len(all) == 0 {
		all = append(all, rest)
	}
	return all
}

func (p *Picture) hostTitle(h site.Host) string {
	title := "host " + h.Name
	if !h.Local() {
		title += ", " + h.Address
	}
	if slices.Contains(p.Silent, h.Name) {
		title += ", does not answer"
	}
	return title
}
