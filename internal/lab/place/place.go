// Package place describes a place where the lab measures: the bare host or a node.
package place

import (
	"context"
	"net/netip"

	"orrery/internal/host"
)

// The tools that come with Orrery, for Place.Command.
const (
	Orrery = "orrery"
	Micro  = "orrery-micro"
)

// A Place is one end of a test: the bare host or a node. Its Runner runs commands there.
type Place struct {
	host.Runner
	Name      string     // of the setting, such as "bare", "veth"
	Node      string     // name of the node, or "" for the host
	Interface string     // in the place, towards the other end
	Address   netip.Addr // of the place, as reached from the other end
	Dir       string     // work directory in the place, initially empty, on the measured disk
	Emulated  bool       // it is a virtual machine whose processors are emulated
	Cgroup    string     // of the node, relative to the root of a hierarchy, or "" for the host
	// HostLinks are the interfaces of the host that carry the traffic of this place.
	HostLinks []string
	Root      string // directory in the place with the files of the layer: "/" in nodes
	// Programs returns the words that run a program of the layer in this place. If Programs is nil,
	// programs are run by their names.
	Programs func(name string) (words []string)
	// Alone runs commands in separate network namespaces, or is nil if the place has its own, like
	// a node.
	Alone host.Runner
}

// Isolated returns the place in a network namespace without the rules and interfaces of the host.
func (p *Place) Isolated() *Place {
	if p.Alone == nil {
		return p
	}
	apart := *p
	apart.Runner, apart.Alone = p.Alone, nil
	return &apart
}

// Command returns the argument list that runs a program of the layer, or a tool, in this place. The
// bare host runs the same files as nodes do, with the layer's own dynamic linker.
func (p *Place) Command(program string, args ...string) []string {
	if p.Programs != nil {
		return append(p.Programs(program), args...)
	}
	return append([]string{program}, args...)
}

// Output runs a program of the layer and returns its standard output.
func (p *Place) Output(ctx context.Context, program string, args ...string) ([]byte, error) {
	return Output(ctx, p, p.Command(program, args...)...)
}
