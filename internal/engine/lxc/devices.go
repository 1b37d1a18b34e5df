package lxc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/host/cgroup"
	"orrery/internal/host/devices"
	"orrery/internal/image/rootfs"
	"orrery/internal/problem"
	"orrery/internal/site/device"
)

// devicesDir returns the directory on which the device files of the node are mounted, in the mount
// namespace of its monitor.
func (c container) devicesDir() string { return c.File("devices") }

func (c container) deviceFile(i int) string { return rootfs.DevicePath(c.devicesDir(), i) }

// lentFile returns the path of the record of the devices that the node got when it was started.
func (c container) lentFile() string { return c.File("devices.json") }

// holder returns the name under which devices are lent to the node.
func (c container) holder() string { return c.ref.Site + "/" + strconv.Itoa(c.ref.ID) }

// claimDevices claims the declared devices of a node that is about to start.
func (c container) claimDevices(ctx context.Context, r *nodedir.Record) ([]devices.Lent, error) {
	if len(r.Devices) == 0 {
		return nil, nil
	}
	lent, err := devices.Local.Claim(ctx, c.holder(), c.Path(), r.Devices)
	if p := (*problem.Problem)(nil); errors.As(err, &p) {
		return nil, p.At("node " + r.Name)
	}
	if err != nil {
		return nil, err
	}
	if err := host.WriteJSON(c.lentFile(), 0o600, lent); err != nil {
		return nil, errors.Join(err, c.releaseDevices(ctx))
	}
	return lent, nil
}

// releaseDevices releases the devices that the node has claimed.
func (c container) releaseDevices(ctx context.Context) error {
	if _, err := os.Lstat(c.lentFile()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := devices.Local.Release(context.WithoutCancel(ctx), c.holder()); err != nil {
		return err
	}
	return os.Remove(c.lentFile())
}

// devicesInForce returns those of the declared devices of a running node that it has: not those that
// the host no longer has under the same number, and not those that its control group no longer allows.
func (c container) devicesInForce(declared []device.Device) (all []device.Device) {
	lent, err := host.ReadJSON[[]devices.Lent](c.lentFile())
	if err != nil {
		return nil
	}
	present := devices.Local.Present(lent)
	for _, d := range declared {
		i := slices.IndexFunc(lent, func(l devices.Lent) bool { return l.Device == d })
		if i >= 0 && slices.Contains(present, d) && cgroup.AllowsDevices(c.group(), rulesOf(lent[i:i+1])) {
			all = append(all, d)
		}
	}
	return all
}

// returnHardware returns the interfaces and the devices of the host that the node has borrowed.
func (c container) returnHardware(ctx context.Context, r *nodedir.Record) error {
	err := c.links(r).returnInterfaces(ctx)
	return errors.Join(err, c.releaseDevices(ctx))
}

func filesOf(lent []devices.Lent) (all []devices.File) {
	for _, l := range lent {
		all = append(all, l.Files...)
	}
	return all
}

// rulesOf returns the rules of lent devices for control groups.
func rulesOf(lent []devices.Lent) (rules []string) {
	for _, f := range filesOf(lent) {
		kind := "c"
		if f.Block {
			kind = "b"
		}
		rules = append(rules, fmt.Sprintf("%s %d:%d %s", kind, f.Major, f.Minor, f.Access))
	}
	return rules
}

func deviceFiles(lent []devices.Lent) (all []rootfs.DeviceFile) {
	for _, f := range filesOf(lent) {
		all = append(all, rootfs.DeviceFile{Block: f.Block, Major: f.Major, Minor: f.Minor, Perm: f.Perm})
	}
	return all
}
