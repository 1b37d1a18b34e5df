package kvm

import (
	"context"
	"time"
)

// A guest notifies virtiofsd by a kick that its queue has entries. Virtiofsd up to 1.13 may lose a
// kick that arrives while QEMU lets it serve a resumed machine (rust-vmm/vhost#343). Then entries
// that were in the queue when the machine was frozen stay there. With VIRTIO_F_EVENT_IDX, a guest
// may omit kicks while the queue has entries. Such a guest would never kick again, and all its file
// operations would wait for ever. So Orrery's guests omit no kicks, and kick once when they resume.

// A resumed guest is asked for a kick up to stirs times, because the first may be lost, too. Each
// time it has kickTimeout. If a guest does not kick at all, it is stuck for another reason.
const (
	maxKickTries = 3
	kickTimeout  = time.Second
)

// ensureKick makes the guest of a resumed machine kick.
func (g *guests) ensureKick(ctx context.Context, m machine) {
	if m.HasDisk() {
		return // it has no virtiofsd
	}
	for range maxKickTries {
		if g.requestKick(context.WithoutCancel(ctx), m) == nil {
			return
		}
	}
}

func (g *guests) requestKick(ctx context.Context, m machine) error {
	ctx, cancel := context.WithTimeout(ctx, kickTimeout)
	defer cancel()
	agent, err := g.agents.Connect(ctx, m.Ref)
	if err != nil {
		return err
	}
	return agent.WakeFileServer(ctx)
}
