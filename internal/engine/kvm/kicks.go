package kvm

import (
	"context"
	"time"
)

// A guest tells virtiofsd by a kick that there is something in its queue. Virtiofsd up to 1.13 may
// lose one that comes while QEMU begins to let it serve a machine that goes on
// (rust-vmm/vhost#343), and so whatever was in the queue when the machine was made to stand still.
// A guest that may leave out kicks while there is something in the queue (VIRTIO_F_EVENT_IDX) never
// gives another then, and all that it does with files waits for ever. So guests of ours leave out
// none, and give one when they go on.

// A guest is asked so often for a kick when it goes on, and each time for so long: the first may be
// lost, too. One that gives none has something else that stops it.
const (
	stirs       = 3
	stirTimeout = time.Second
)

// stir has the guest of a machine that goes on give a kick.
func (g *guests) stir(ctx context.Context, m machine) {
	if m.HasDisk() {
		return // it has no virtiofsd
	}
	for range stirs {
		if g.kick(context.WithoutCancel(ctx), m) == nil {
			return
		}
	}
}

func (g *guests) kick(ctx context.Context, m machine) error {
	ctx, cancel := context.WithTimeout(ctx, stirTimeout)
	defer cancel()
	agent, err := g.agents.Of(ctx, m.Ref)
	if err != nil {
		return err
	}
	return agent.Stir(ctx)
}
