package spec

import (
	"cmp"
	"slices"
	"strings"

	"orrery/internal/site"
)

// A Rewire is the change of the interfaces of a running machine.
type Rewire struct {
	Out, In []NIC // Out is removed first, then In is added
}

// Rewire returns how to change the interfaces of a running machine into those of target. It returns
// false for live if the change needs a restart. On the networks in doubt it is unknown whether the
// machine or its guest has the interface. Their interfaces are removed and added again. An
// interface that stays does not change, except for its bridge.
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

// rewirable reports whether interfaces can be added and removed while the node runs. Network cards
// of other models than virtio have no free slot. A guest from an imported disk image learns its
// interfaces only at boot.
func (n *Node) rewirable() bool {
	return !n.Imported() && cmp.Or(n.VM.Model, site.Virtio) == site.Virtio
}

// IsZero reports whether nothing changes.
func (r Rewire) IsZero() bool { return len(r.Out)+len(r.In) == 0 }

// Without returns nics without the interfaces on the networks of some.
func Without(nics, some []NIC) []NIC {
	return slices.DeleteFunc(slices.Clone(nics), func(nic NIC) bool {
		return slices.ContainsFunc(some, func(s NIC) bool { return s.Network == nic.Network })
	})
}

// NetworksOf lists the networks of interfaces, each after a word: "plugs network lan, plugs network
// fast".
func NetworksOf(word string, nics []NIC) string {
	var all []string
	for _, nic := range nics {
		all = append(all, word+" network "+nic.Network)
	}
	return strings.Join(all, ", ")
}
