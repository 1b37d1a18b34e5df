// Package strict decodes TOML into structures. It reports every mistake with its line, whereas
// go-toml stops at the first value of a wrong type.
package strict

import (
	"maps"
	"slices"
	"strconv"

	"orrery/internal/text/sanitize"
)

// A Node is a value of a file with its position and everything inside it.
type Node struct {
	Line  int
	File  string           // file that has the value, if several were merged, or ""
	Value any              // as returned by go-toml
	Keys  map[string]*Node // of a table
	Order []string         // keys in the order of the file
	Items []*Node          // of a list

	head bool // a table with its own header
}

// A SyntaxError is the reason why a file is not TOML.
type SyntaxError struct {
	Line int
	What string
}

// Error returns the reason.
func (e *SyntaxError) Error() string { return e.What }

// Parse parses a file.
func Parse(content []byte) (*Node, *SyntaxError) {
	content, encoded := sanitize.StripBOM(content)
	if encoded != nil {
		return nil, &SyntaxError{Line: 1, What: encoded.Error()}
	}
	values, wrong := unmarshal(content)
	if wrong != nil {
		return nil, wrong
	}
	root, wrong := lines(content)
	if wrong != nil {
		return nil, wrong
	}
	root.fill(values)
	return root, nil
}

// fill sets the values of nodes. A value without a position gets that of the value around it.
func (n *Node) fill(value any) {
	n.Value = value
	switch value := value.(type) {
	case map[string]any:
		n.Items = nil
		n.Order = slices.DeleteFunc(n.Order, func(key string) bool { _, ok := value[key]; return !ok })
		if len(n.Order) < len(value) {
			for _, key := range slices.Sorted(maps.Keys(value)) {
				n.key(key, n.Line)
			}
		}
		for _, key := range n.Order {
			n.Keys[key].fill(value[key])
		}
	case []any:
		n.Keys, n.Order = nil, nil
		for len(n.Items) < len(value) {
			n.Items = append(n.Items, &Node{Line: n.Line})
		}
		n.Items = n.Items[:len(value)]
		for i, item := range value {
			n.Items[i].fill(item)
		}
	default:
		n.Keys, n.Order, n.Items = nil, nil, nil
	}
}

// key returns the node of a key in a table. It creates the node if necessary.
func (n *Node) key(name string, line int) *Node {
	child, ok := n.Keys[name]
	if !ok {
		child = &Node{Line: line}
		if n.Keys == nil {
			n.Keys = map[string]*Node{}
		}
		n.Keys[name] = child
		n.Order = append(n.Order, name)
	}
	return child
}

// At returns the node of a key, or the table itself if it does not have the key.
func (n *Node) At(key string) *Node {
	if child := n.Keys[key]; child != nil {
		return child
	}
	return n
}

// Find follows keys and item numbers as far as they exist. It returns the last node and the number
// of parts it followed.
func (n *Node) Find(path ...string) (*Node, int) {
	for i, part := range path {
		next, ok := n.Keys[part]
		if item, err := strconv.Atoi(part); !ok && err == nil && 0 <= item && item < len(n.Items) {
			next, ok = n.Items[item], true
		}
		if !ok {
			return n, i
		}
		n = next
	}
	return n, len(path)
}

// Rename renames a key.
func (n *Node) Rename(from, to string) {
	n.Keys[to] = n.Keys[from]
	delete(n.Keys, from)
	n.Order = slices.DeleteFunc(n.Order, func(key string) bool { return key == to })
	n.Order[slices.Index(n.Order, from)] = to
}

// Subset returns a copy of a table that has only some keys.
func (n *Node) Subset(keys ...string) *Node {
	part := &Node{Line: n.Line, File: n.File, Value: n.Value, Keys: map[string]*Node{}}
	for _, key := range n.Order {
		if slices.Contains(keys, key) {
			part.Keys[key] = n.Keys[key]
			part.Order = append(part.Order, key)
		}
	}
	return part
}

// Descendants returns all nodes below this one.
func (n *Node) Descendants() map[*Node]bool {
	all := map[*Node]bool{}
	n.addDescendants(all)
	return all
}

func (n *Node) addDescendants(all map[*Node]bool) {
	for _, child := range n.Keys {
		all[child] = true
		child.addDescendants(all)
	}
	for _, item := range n.Items {
		all[item] = true
		item.addDescendants(all)
	}
}
