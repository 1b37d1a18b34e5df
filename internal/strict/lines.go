package strict

import (
	"bytes"

	"github.com/pelletier/go-toml/v2/unstable"
)

// lines returns the positions of all keys and values. The file must be valid TOML, except that it
// may have the same header in two parts.
func lines(content []byte) (*Node, *SyntaxError) {
	root := &Node{Line: 1}
	current := root
	var parser unstable.Parser
	parser.Reset(content)
	count := counter{content: content, line: 1}
	for parser.NextExpression() {
		switch e := parser.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table, wrong := count.header(root, e)
			if wrong != nil {
				return nil, wrong
			}
			current = table
		case unstable.KeyValue:
			count.pair(current, e)
		}
	}
	return root, nil
}

// A counter converts increasing offsets to line numbers.
type counter struct {
	content      []byte
	offset, line int
}

func (c *counter) at(n *unstable.Node) int {
	if to := int(n.Raw.Offset); n.Raw.Length > 0 && to > c.offset && to <= len(c.content) {
		c.line += bytes.Count(c.content[c.offset:to], []byte{'\n'})
		c.offset = to
	}
	return c.line
}

// header returns the table that begins at a header.
func (c *counter) header(root *Node, e *unstable.Node) (*Node, *SyntaxError) {
	current := root
	for it := e.Key(); it.Next(); {
		line := c.at(it.Node())
		child := current.key(string(it.Node().Data), line)
		if e.Kind == unstable.ArrayTable && it.IsLast() {
			child.Items = append(child.Items, &Node{Line: line})
		}
		if len(child.Items) > 0 {
			child = child.Items[len(child.Items)-1]
		}
		if current = child; !it.IsLast() {
			continue
		}
		if current.head {
			return nil, &SyntaxError{line, "table " + string(it.Node().Data) + " already exists"}
		}
		current.head, current.Line = true, line // not the line of an earlier [table.within]
	}
	return current, nil
}

func (c *counter) pair(table *Node, pair *unstable.Node) {
	at := table
	for it := pair.Key(); it.Next(); {
		at = at.key(string(it.Node().Data), c.at(it.Node()))
	}
	c.value(at, pair.Value())
}

func (c *counter) value(at *Node, v *unstable.Node) {
	switch v.Kind {
	case unstable.InlineTable:
		for it := v.Children(); it.Next(); {
			if it.Node().Kind == unstable.KeyValue {
				c.pair(at, it.Node())
			}
		}
	case unstable.Array:
		for it := v.Children(); it.Next(); {
			item := &Node{Line: c.at(it.Node())}
			at.Items = append(at.Items, item)
			c.value(item, it.Node())
		}
	}
}
