package vm

import (
	"context"

	"orrery/internal/engine/nodedir"
	"orrery/internal/host/qemu"
	"orrery/internal/image/kernel"
)

// BootFiles returns the kernel of a node, and the initramfs with this host's orrery-guest.
func BootFiles(ctx context.Context, nodes *nodedir.Nodes, r *nodedir.Record) (*kernel.Boot, error) {
	guest, err := qemu.Guest()
	if err != nil {
		return nil, err
	}
	return kernel.Files(ctx, nodes.Store, r.Kernel, guest)
}
