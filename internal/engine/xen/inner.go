package xen

import (
	"encoding/json"
	"os"

	"orrery/internal/engine/confine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/network/ends"
	"orrery/internal/problem"
)

// RunDeviceModel is what the toolstack runs as the device model of a domain. It becomes the node's backend,
// which file describes.
func RunDeviceModel(file string, args []string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var b confine.Backend
	if err := json.Unmarshal(text, &b); err != nil {
		return err
	}
	// Debian builds its QEMU for Xen without the filter of system calls, so none is used.
	return b.Exec(args)
}

// SetUpLink is what the toolstack runs when a card of a guest appears. It turns the new link into the
// host's end of the node's interface. It reads the network from the node's record, because the node
// may have been moved since its domain was made.
func SetUpLink(node string, i int, name string) error {
	r, err := nodedir.At(node).Read()
	if err != nil {
		return err
	}
	if i < 0 || i >= len(r.NICs) {
		return problem.New(problem.Failed, "node %s has no interface %d", r.Name, i).At(node)
	}
	return ends.Claim(name, r.NICs[i], r.KindOf(r.NICs[i]))
}
