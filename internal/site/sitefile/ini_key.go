package sitefile

import (
	"slices"
	"strconv"
)

func (w *iniWriter) writeKey(n *iniNode, key string, vars map[string]string) {
	value, placed := n.keys[key], false
	if isAddressKey(key) {
		return // already converted
	}
	switch key {
	case "roles", "role", "groups", "group", "production", "ctid", "os/template", "ostemplate", "template", "os":
		return
	case "description", "owner", "comment":
		vars[key] = value
		return
	case "host_server":
		if host := w.nodes[value]; host != nil && host.isHost {
			w.printf("host   = %s\n", Quote(host.name))
			placed = true
		}
	case "cpus", "cpu", "cores":
		placed = w.cpus(n, key)
	case "ram", "memory":
		placed = w.size(n, key, "memory")
	case "swap":
		if !n.hasMemory() {
			w.noteLostKey(n, key, "a node without a memory limit has no swap limit")
			return
		}
		placed = w.size(n, key, "swap")
	}
	if !placed {
		w.noteLostKey(n, key, "no matching key")
	}
}

func (w *iniWriter) cpus(n *iniNode, key string) bool {
	cpus, err := strconv.ParseFloat(n.keys[key], 64)
	if err != nil || !(cpus >= 0.01) || cpus > 1<<16 {
		return false
	}
	w.printf("cpus   = %s\n", strconv.FormatFloat(cpus, 'f', -1, 64))
	return true
}

// hasMemory reports whether a section has a usable memory size.
func (n *iniNode) hasMemory() bool {
	return slices.ContainsFunc([]string{"ram", "memory"}, func(key string) bool {
		text, ok := sizeOf(n.keys[key])
		return ok && isEnoughMemory(text)
	})
}

// size writes the memory size of a key, under its name in the site file. It reports whether it
// could.
func (w *iniWriter) size(n *iniNode, key, as string) bool {
	text, ok := sizeOf(n.keys[key])
	if !ok || !isEnoughMemory(text) && as != "swap" {
		return false
	}
	w.printf("%-6s = %s\n", as, Quote(text))
	return true
}

func (w *iniWriter) comments(n *iniNode) {
	for _, lost := range n.lost {
		w.printf("# not placed: %s\n", oneLine(lost))
	}
}
