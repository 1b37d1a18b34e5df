package kvm

import (
	"context"
	"errors"

	"orrery/internal/engine/kvm/argv"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/site/spec"
)

// addNIC plugs in a card whose files QEMU has received.
func addNIC(ctx context.Context, q *qmp.Client, card argv.Card) error {
	if err := q.Do(ctx, "netdev_add", card.Netdev, nil); err != nil {
		return err
	}
	return q.Do(ctx, "device_add", card.Device, nil)
}

// removeNICBackend removes the backend of a network card that the guest no longer has, if it exists.
func removeNICBackend(ctx context.Context, q *qmp.Client, nic spec.NIC) error {
	var refused *qmp.CommandError
	if err := q.Do(ctx, "netdev_del", map[string]string{"id": argv.CardID(nic)}, nil); err != nil &&
		(!errors.As(err, &refused) || !isNotFound(refused)) {
		return err
	}
	return nil
}
