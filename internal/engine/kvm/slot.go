package kvm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"orrery/internal/engine/kvm/argv"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/strict/jsonlimit"
)

// findFreeSlot returns a free slot, or "" if all are taken, and whether a device is plugged already.
func findFreeSlot(ctx context.Context, q *qmp.Client, device string) (free string, plugged bool, err error) {
	var buses []argv.Bus
	if err := q.Do(ctx, "query-pci", nil, &buses); err != nil {
		return "", false, err
	}
	slots := argv.SlotsOf(buses)
	_, plugged = slots.Taken[device]
	used := map[int]bool{}
	for _, at := range slots.Taken {
		used[at] = true
	}
	for i := range slots.Number {
		if !used[i] {
			return argv.Slot(i), plugged, nil
		}
	}
	return "", plugged, nil
}

// unplugTimeout limits how long a guest may take to release a device.
const unplugTimeout = 30 * time.Second

// unplugDevice asks a guest to release a device, and waits until it has.
func unplugDevice(ctx context.Context, q *qmp.Client, id string) error {
	err := q.Do(ctx, "device_del", map[string]string{"id": id}, nil)
	var refused *qmp.CommandError
	switch {
	case errors.As(err, &refused) && refused.Class == "DeviceNotFound": // a killed run unplugged it before
		return nil
	case err != nil && !strings.Contains(err.Error(), "already in the process of unplug"):
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, unplugTimeout,
		fmt.Errorf("its guest did not release it within %s", unplugTimeout))
	defer cancel()
	return awaitUnplugged(ctx, q, id)
}

// awaitUnplugged waits until QEMU reports that a device is gone.
func awaitUnplugged(ctx context.Context, q *qmp.Client, id string) error {
	for {
		event, err := q.Await(ctx, "DEVICE_DELETED", "DEVICE_UNPLUG_GUEST_ERROR")
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return err
		}
		var of struct {
			Device string `json:"device"`
		}
		if err := jsonlimit.Unmarshal(event.Data, &of); err != nil || of.Device != id {
			continue
		}
		if event.Name != "DEVICE_DELETED" {
			return errors.New("its guest refuses to release it")
		}
		return nil
	}
}

// isNotFound reports whether QEMU refused a command because the object does not exist.
func isNotFound(r *qmp.CommandError) bool {
	return strings.Contains(r.What, "Failed to find node") || strings.Contains(r.What, "not found") ||
		strings.Contains(r.What, "Cannot find")
}
