package spec

import (
	"cmp"
	"slices"
	"strings"

	"orrery/internal/site"
)

// A Rewire is how the interfaces of a machine that runs change.
type Rewire struct {
	Out, In []NIC // go, and come after that
}

// Rewire says how the interfaces of a running machine become those of another; it cannot be if not
// live. Of the networks in doubt nobody knows whether the machine, or its guest, has the interface:
// what there is of it goes. An interface that stays is left as it is, but for the bridge on which
// it is.
func (n *Node) Rewire(target *Node, doubt []string) (r Rewire, live bool) {
	before, shall := Linked(n), Linked(target)
	stays := map[string]bool{}
	for i, nic := range before {
		at := slices.IndexFunc(shall, func(s NIC) bool { return s.Network == nic.Network })
		switch {
		case at < 0 || slices.Contains(doubt, nic.Network):
			r.Out = append(r.Out, n.NICs[i])
		case shall[at] != nic:
			return r, false
		default:
			stays[nic.Network] = true
		}
	}
	for _, nic := range target.NICs {
		if !stays[nic.Network] {
			r.In = append(r.In, nic)
		}
	}
	return r, r.IsZero() || n.rewirable() && target.rewirable()
}

// rewirable reports whether interfaces can come to the node and go while it runs: cards of other
// models than virtio have no slot, and a disk of others has been told of its interfaces as it
// booted.
func (n *Node) rewirable() bool {
	return !n.Imported() && cmp.Or(n.VM.Model, site.Virtio) == site.Virtio
}

// IsZero reports whether all stays.
func (r Rewire) IsZero() bool { return len(r.Out)+len(r.In) == 0 }

// Without returns interfaces without some.
func Without(nics, some []NIC) []NIC {
	return slices.DeleteFunc(slices.Clone(nics), func(nic NIC) bool {
		return slices.ContainsFunc(some, func(s NIC) bool { return s.Network == nic.Network })
	})
}

// NetworksOf names the networks of interfaces, each after a word: "plugs network lan, plugs network fast".
func NetworksOf(word string, nics []NIC) string {
	var all []string
	for _, nic := range nics {
		all = append(all, word+" network "+nic.Network)
	}
	return strings.Join(all, ", ")
}
