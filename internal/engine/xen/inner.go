package xen

import (
	"encoding/json"
	"os"

	"orrery/internal/engine/confine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/network/ends"
	"orrery/internal/problem"
)

// Model is what the toolstack runs as the device model of a domain: it becomes the node's backend,
// which a file describes.
func Model(file string, args []string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var b confine.Backend
	if err := json.Unmarshal(text, &b); err != nil {
		return err
	}
	return b.Become(args) // without QEMU's filter of system calls: that which Debian has for Xen is built without it
}

// Link is what the toolstack runs when a card of a guest has come: it makes the link that there is
// now the host's end of a node's interface, where the record has it: the node may have been moved
// since its domain was made.
func Link(node string, i int, name string) error {
	r, err := nodedir.At(node).Read()
	if err != nil {
		return err
	}
	if i < 0 || i >= len(r.NICs) {
		return problem.New(problem.Failed, "node %s has no interface %d", r.Name, i).At(node)
	}
	return ends.Adopt(name, r.NICs[i], r.KindOf(r.NICs[i]))
}
