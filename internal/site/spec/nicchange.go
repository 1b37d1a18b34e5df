package spec

import (
	"cmp"
	"slices"
	"strings"

	"orrery/internal/site"
)

// A NICChange is the change of the interfaces of a running machine.
type NICChange struct {
	Out, In []NIC // Out is removed first, then In is added
}

// NICChange returns how to change the interfaces of a running machine into those of target. It returns
// false for live if the change needs a restart. On the networks in doubt it is unknown whether the
// machine or its guest has the interface. Their interfaces are removed and added again. An
// interface that stays does not change, except for its bridge.
func (n *Node) NICChange(target *Node, doubt []string) (r NICChange, live bool) {
	before, shall := WithoutBridges(n), WithoutBridges(target)
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
	return r, r.IsZero() || n.canChangeNICs() && target.canChangeNICs()
}

// canChangeNICs reports whether interfaces can be added and removed while the node runs. Network cards
// of other models than virtio have no free slot. A guest from an imported disk image learns its
// interfaces only at boot.
func (n *Node) canChangeNICs() bool {
	return !n.Imported() && cmp.Or(n.VM.Model, site.Virtio) == site.Virtio
}

// IsZero reports whether nothing changes.
func (r NICChange) IsZero() bool { return len(r.Out)+len(r.In) == 0 }

// WithoutNICs returns nics without the interfaces on the networks of some.
func WithoutNICs(nics, some []NIC) []NIC {
	return slices.DeleteFunc(slices.Clone(nics), func(nic NIC) bool {
		return slices.ContainsFunc(some, func(s NIC) bool { return s.Network == nic.Network })
	})
}

// DescribeNetworks lists the networks of interfaces, each after a word: "plugs network lan, plugs network
// fast".
func DescribeNetworks(word string, nics []NIC) string {
	var all []string
	for _, nic := range nics {
		all = append(all, word+" network "+nic.Network)
	}
	return strings.Join(all, ", ")
}
