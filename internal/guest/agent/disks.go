package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/image/rootfs"
	"orrery/internal/transport/rpc"
)

// CheckDisksUnused returns nil if nothing in the machine uses its disks with these serial numbers, or a
// *rpc.InUse. The kernel itself would release a mounted disk, and lose what it has not yet written
// to it.
func (guest) CheckDisksUnused(ctx context.Context, serials []string) error {
	for _, serial := range serials {
		for _, name := range withSerial("/sys", serial) {
			if err := checkUnused(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// withSerial returns the names of the disks with a serial number.
func withSerial(sys, serial string) (names []string) {
	files, _ := filepath.Glob(sys + "/block/*/serial")
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(text)) == serial {
			names = append(names, filepath.Base(filepath.Dir(file)))
		}
	}
	return names
}

// checkUnused checks one disk by its name. It retries, because programs such as udev open a disk for a
// moment.
func checkUnused(ctx context.Context, name string) error {
	for attempt := 1; ; attempt++ {
		by, err := diskUsers(name)
		var used *rpc.InUse
		if !errors.As(err, &used) && len(by) == 0 {
			return err
		}
		if attempt == maxUnmountAttempts {
			return &rpc.InUse{By: strings.Join(by, ", ")}
		}
		if err := host.Sleep(ctx, retryInterval); err != nil {
			return err
		}
	}
}

// diskUsers returns what uses a disk or one of its partitions. The error is a *rpc.InUse if the
// kernel itself has claimed the disk, even if no user was found.
func diskUsers(name string) (by []string, err error) {
	disk, err := os.OpenFile("/dev/"+name, os.O_RDONLY|unix.O_EXCL|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, unix.EBUSY):
		err = &rpc.InUse{}
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENXIO):
		return nil, nil // it has gone
	case err != nil:
		return nil, err
	default:
		_ = disk.Close()
	}
	for _, part := range partitionsOf(name) {
		by = append(by, mountsOf(part)...)
		by = append(by, devicesAbove(part)...)
		by = append(by, usersOf("/dev/"+filepath.Base(part))...)
	}
	return by[:min(len(by), maxUsers)], err
}

// partitionsOf returns the directories in /sys of a disk and its partitions.
func partitionsOf(name string) []string {
	dir := "/sys/block/" + name
	partitions, _ := filepath.Glob(dir + "/*/partition")
	all := []string{dir}
	for _, file := range partitions {
		all = append(all, filepath.Dir(file))
	}
	return all
}

// mountsOf returns where the file system on a disk or partition is mounted, in any namespace.
func mountsOf(part string) (by []string) {
	number, err := os.ReadFile(part + "/dev")
	if err != nil {
		return nil
	}
	for _, pid := range mountNamespaces() {
		table, _ := rootfs.MountsOf(strconv.Itoa(pid)) // the process may have ended
		for _, m := range table {
			what := fmt.Sprintf("the mount at %s", m.At)
			if m.Source.Device == strings.TrimSpace(string(number)) && !slices.Contains(by, what) {
				by = append(by, what)
			}
		}
	}
	return by
}

// devicesAbove returns what is built on a disk or partition: swap, a loop device, LVM, RAID or
// encryption.
func devicesAbove(part string) (by []string) {
	device := "/dev/" + filepath.Base(part)
	swaps, _ := os.ReadFile("/proc/swaps")
	for line := range strings.Lines(string(swaps)) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == device {
			by = append(by, "swap")
		}
	}
	loops, _ := filepath.Glob("/sys/block/*/loop/backing_file")
	for _, file := range loops {
		if text, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(text)) == device {
			by = append(by, filepath.Base(filepath.Dir(filepath.Dir(file))))
		}
	}
	holders, _ := filepath.Glob(part + "/holders/*")
	for _, holder := range holders {
		by = append(by, filepath.Base(holder))
	}
	return by
}
