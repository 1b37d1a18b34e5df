// Package place is a place where the lab measures: the bare host or a node, with the same binaries.
package place

import (
	"context"
	"net/netip"

	"orrery/internal/host"
)

// The tools that come with Orrery, as Place.Command knows them.
const (
	Orrery = "orrery"
	Micro  = "orrery-micro"
)

// A Place is one end of a test: the bare host or a node. Its Runner runs commands there.
type Place struct {
	host.Runner
	Name      string     // of the setting, such as "bare", "veth"
	Node      string     // of the node; "": the host
	Interface string     // there, that leads to the other end
	Address   netip.Addr // there, by which the other end reaches it
	Dir       string     // work directory there, empty at first, on the disk that is measured
	Emulated  bool       // it is a virtual machine, whose processors are emulated
	Cgroup    string     // of the node, from the root of a hierarchy; "": the host
	// HostLinks are the interfaces of the host through which the traffic of this place goes.
	HostLinks []string
	Root      string // there, below which the files of the layer are: "/" in nodes
	// Programs says how a program of the layer is run here: the words that stand for its name. A
	// program that is not listed is run by its name.
	Programs func(name string) (words []string)
	// Alone runs commands in a network namespace of their own, as nodes have it; nil: this place is one.
	Alone host.Runner
}

// Apart returns the place in a network namespace without the rules and interfaces of the host.
func (p *Place) Apart() *Place {
	if p.Alone == nil {
		return p
	}
	apart := *p
	apart.Runner, apart.Alone = p.Alone, nil
	return &apart
}

// Command returns the argument list that runs a program of the layer, or a tool, in this place. The
// bare host runs the same files as nodes do, by the layer's own dynamic linker.
func (p *Place) Command(program string, args ...string) []string {
	if p.Programs != nil {
		return append(p.Programs(program), args...)
	}
	return append([]string{program}, args...)
}

// Output runs a program of the layer and returns what it printed on standard output.
func (p *Place) Output(ctx context.Context, program string, args ...string) ([]byte, error) {
	return Output(ctx, p, p.Command(program, args...)...)
}
