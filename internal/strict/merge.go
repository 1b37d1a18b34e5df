package strict

import "slices"

// Merge returns a table with the keys of two tables. Tables that both have under the same key are
// merged in the same way, and any other value of over replaces that of base. The values keep their
// positions. The keys of base come first.
func Merge(base, over *Node) *Node {
	if !base.isTable() || !over.isTable() {
		return over
	}
	both := &Node{Line: over.Line, File: over.File, Keys: make(map[string]*Node, len(base.Keys)+len(over.Keys))}
	values := make(map[string]any, len(base.Keys)+len(over.Keys))
	add := func(key string, child *Node) {
		if both.Keys[key] == nil {
			both.Order = append(both.Order, key)
		}
		both.Keys[key], values[key] = child, child.Value
	}
	for _, key := range base.Order {
		add(key, base.Keys[key])
	}
	for _, key := range over.Order {
		child := over.Keys[key]
		if below := base.Keys[key]; below != nil {
			child = Merge(below, child)
		}
		add(key, child)
	}
	both.Value = values
	return both
}

func (n *Node) isTable() bool {
	_, ok := n.Value.(map[string]any)
	return ok
}

// Remove removes the value that keys lead to. It returns false if there is none.
func (n *Node) Remove(path ...string) bool {
	for len(path) > 1 {
		if n = n.Keys[path[0]]; n == nil {
			return false
		}
		path = path[1:]
	}
	key := path[0]
	if n.Keys[key] == nil {
		return false
	}
	delete(n.Keys, key)
	delete(n.Value.(map[string]any), key)
	n.Order = slices.DeleteFunc(slices.Clone(n.Order), func(other string) bool { return other == key })
	return true
}

// SetFile sets the file of a value and of everything inside it.
func (n *Node) SetFile(file string) {
	n.File = file
	for _, child := range n.Keys {
		child.SetFile(file)
	}
	for _, item := range n.Items {
		item.SetFile(file)
	}
}
