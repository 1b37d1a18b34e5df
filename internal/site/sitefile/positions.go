package sitefile

import (
	"bytes"
	"strconv"

	"github.com/pelletier/go-toml/v2/unstable"
)

// A place is where a key or value stands in a TOML file, with all that is within it.
type place struct {
	line  int
	head  bool              // a table with a header of its own
	keys  map[string]*place // of a table
	order []string          // the keys as they were written: networks, for one, have an order
	items []*place          // of an array
}

// key gives the place of a key in a table, which is made if it is new.
func (p *place) key(name string, line int) *place {
	child, ok := p.keys[name]
	if !ok {
		child = &place{line: line}
		if p.keys == nil {
			p.keys = map[string]*place{}
		}
		p.keys[name] = child
		p.order = append(p.order, name)
	}
	return child
}

// table is key for the table of a header, in an array of tables its latest.
func (p *place) table(name string, line int) *place {
	child := p.key(name, line)
	if len(child.items) > 0 {
		return child.items[len(child.items)-1]
	}
	return child
}

// find follows keys, and numbers of items, as far as they are written. It also gives how many it followed.
func (p *place) find(path ...string) (*place, int) {
	for i, part := range path {
		next, ok := p.keys[part]
		if n, err := strconv.Atoi(part); !ok && err == nil && 0 <= n && n < len(p.items) {
			next, ok = p.items[n], true
		}
		if !ok {
			return p, i
		}
		p = next
	}
	return p, len(path)
}

// positions tells where everything stands in a file that is valid TOML, but may have the same header in two parts.
func positions(content []byte) (*place, *syntaxError) {
	root := &place{line: 1}
	current := root
	var parser unstable.Parser
	parser.Reset(content)
	lines := lineCounter{content: content, line: 1}
	for parser.NextExpression() {
		switch e := parser.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			current = root
			for it := e.Key(); it.Next(); {
				line := lines.at(it.Node())
				if e.Kind == unstable.ArrayTable && it.IsLast() {
					array := current.key(string(it.Node().Data), line)
					array.items = append(array.items, &place{line: line})
					current = array.items[len(array.items)-1]
				} else {
					current = current.table(string(it.Node().Data), line)
				}
				if it.IsLast() {
					if current.head {
						return root, &syntaxError{line, "table " + string(it.Node().Data) + " already exists"}
					}
					current.head, current.line = true, line // and not the line of a [table.within] before
				}
			}
		case unstable.KeyValue:
			lines.pair(current, e)
		}
	}
	return root, nil
}

// A lineCounter turns offsets into lines, going forward only: the time is that of one pass.
type lineCounter struct {
	content      []byte
	offset, line int
}

func (c *lineCounter) at(n *unstable.Node) int {
	if to := int(n.Raw.Offset); n.Raw.Length > 0 && to > c.offset && to <= len(c.content) {
		c.line += bytes.Count(c.content[c.offset:to], []byte{'\n'})
		c.offset = to
	}
	return c.line
}

func (c *lineCounter) pair(table *place, pair *unstable.Node) {
	at := table
	for it := pair.Key(); it.Next(); {
		at = at.key(string(it.Node().Data), c.at(it.Node()))
	}
	c.value(at, pair.Value())
}

func (c *lineCounter) value(at *place, v *unstable.Node) {
	switch v.Kind {
	case unstable.InlineTable:
		for it := v.Children(); it.Next(); {
			if it.Node().Kind == unstable.KeyValue {
				c.pair(at, it.Node())
			}
		}
	case unstable.Array:
		for it := v.Children(); it.Next(); {
			item := &place{line: c.at(it.Node())}
			at.items = append(at.items, item)
			c.value(item, it.Node())
		}
	}
}
