package network

import (
	"context"

	"orrery/internal/host"
	"orrery/internal/host/sriov"
	"orrery/internal/network/passthrough"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// PreparePassthrough prepares an interface of the host for a node, given as SITE/ID, to take. It refuses
// an interface that the host itself needs, since this would cut the host off. For a virtual function
// it also sets what the card lets the node do.
func PreparePassthrough(ctx context.Context, nic spec.NIC, node string) error {
	unlock, err := lock(ctx, host.Exclusive)
	if err != nil {
		return err
	}
	defer unlock()
	if site.KindOf(nic.Kind).VirtualFunctions {
		return sriov.Local.Lend(ctx, sriov.Request{Function: nic.Parent, Holder: node, MAC: nic.MAC, VLAN: nic.VLAN,
			MTU: nic.MTU})
	}
	return passthrough.Prepare(nic.Parent, node)
}

// RestorePassthrough restores the name and all settings of an interface that a node took, if it is on the
// host.
func RestorePassthrough(ctx context.Context, nic spec.NIC, node string) error {
	unlock, err := lock(ctx, host.Exclusive)
	if err != nil {
		return err
	}
	defer unlock()
	if site.KindOf(nic.Kind).VirtualFunctions {
		return sriov.Local.Return(ctx, nic.Parent, node)
	}
	return passthrough.Restore(nic.Parent, node)
}
