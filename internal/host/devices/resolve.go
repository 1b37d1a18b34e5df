package devices

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site/device"
	"orrery/internal/tree/rawfile"
)

// maxFiles limits how many devices a class may have.
const maxFiles = 256

// resolve returns the files that a declared device means, at least one.
func (h Host) resolve(d device.Device) (all []File, err error) {
	if c, ok := d.Class(); ok {
		all, err = h.ofClass(d, c)
	} else if vendor, product, ok := d.USB(); ok {
		all, err = h.ofUSB(d, vendor, product)
	} else {
		var f File
		f, err = h.ofPath(d, filepath.Join(h.Dev, strings.TrimPrefix(d.Path, "/dev/")), d.Path)
		all = []File{f}
	}
	if err == nil && len(all) > maxFiles {
		err = unable("%s means %d devices, more than %d", d.Path, len(all), maxFiles).Try("name the devices")
	}
	return all, err
}

// ofPath returns the file that a container gets for a device file of the host, or for a link to one.
func (h Host) ofPath(d device.Device, path, inside string) (File, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return File{}, unable("device %s does not exist", inside).
			Try("connect it or load its driver, or remove it from devices")
	}
	if err != nil {
		return File{}, unable("device %s cannot be found", inside).Because(err)
	}
	if !strings.HasPrefix(real, h.Dev+"/") {
		return File{}, unable("device %s is a link out of /dev, to %s", inside, real).
			Try("name a device file below /dev")
	}
	n, perm, err := h.stat(real)
	if errors.Is(err, errNoDevice) {
		return File{}, unable("%s is not a device file", inside).Try("name a device file; directories are volumes")
	}
	if err != nil {
		return File{}, unable("device %s cannot be found", inside).Because(err)
	}
	if why := h.refuses(n); why != "" {
		return File{}, unable("device %s %s, and no node gets it", inside, why).Try("remove it from devices")
	}
	return File{Number: n, Path: inside, Access: d.Access(), Perm: perm&0o666 | 0o600}, nil
}

// ofClass returns the existing devices of a class.
func (h Host) ofClass(d device.Device, c device.Class) (all []File, err error) {
	dir := filepath.Join(h.Sys, "dev", Number{Block: c.Block}.kind())
	entries, _ := os.ReadDir(dir)
	var minors []int
	for _, e := range entries {
		major, minor, _ := strings.Cut(e.Name(), ":")
		n, err := strconv.Atoi(minor)
		if err == nil && major == strconv.FormatUint(uint64(c.Major), 10) && (c.All || n == int(c.Minor)) {
			minors = append(minors, n)
		}
	}
	slices.Sort(minors)
	for _, minor := range minors {
		f, err := h.named(d, filepath.Join(dir, fmt.Sprintf("%d:%d", c.Major, minor)))
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		return nil, unable("no device is %s", d.Path).
			Try("/proc/devices lists the numbers of drivers; or remove it from devices")
	}
	return all, nil
}

// named returns the file of a device that is a directory of sysfs.
func (h Host) named(d device.Device, sys string) (File, error) {
	text, _ := rawfile.ReadFile(filepath.Join(sys, "uevent"))
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "DEVNAME="); ok && filepath.IsLocal(name) {
			return h.ofPath(d, filepath.Join(h.Dev, name), "/dev/"+name)
		}
	}
	return File{}, unable("device %s of %s has no file", filepath.Base(sys), d.Path).Try("name another device")
}

// ofUSB returns the USB devices with these ids that are plugged in.
func (h Host) ofUSB(d device.Device, vendor, product string) (all []File, err error) {
	dir := filepath.Join(h.Sys, "bus/usb/devices")
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		read := func(name string) string {
			text, _ := rawfile.ReadFile(filepath.Join(dir, e.Name(), name))
			return strings.TrimSpace(string(text))
		}
		if read("idVendor") != vendor || read("idProduct") != product {
			continue
		}
		f, err := h.named(d, filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		return nil, unable("no device %s is plugged in", d.Path).
			Try("lsusb lists them; plug it in, or remove it from devices")
	}
	return all, nil
}

// refusedNumbers are character devices that reach what belongs to the host.
var refusedNumbers = map[[2]uint32]string{
	{1, 1}: memory, {1, 2}: memory, {1, 4}: "is the host's ports", {1, 11}: "is the host's log",
	{5, 1}: "is the host's console", {10, 144}: "is the host's firmware memory", {10, 203}: "makes devices of the host",
	{10, 223}: input, {10, 231}: memory, {10, 234}: disks, {10, 235}: "controls mounts of the host", {10, 236}: disks,
	{10, 237}: disks, {10, 239}: input,
}

// Reasons why no node gets a device.
const (
	memory = "is the host's memory"
	disks  = "controls disks of the host"
	input  = "sends input to the host"
	raw    = "reaches a disk without the kernel's checks"
)

// refusedClasses are classes of character devices, by their name in sysfs.
var refusedClasses = map[string]string{
	"scsi_generic": raw, "bsg": raw, "nvme": raw, "nvme-generic": raw, "nvme-subsystem": raw, "raw": raw,
	"mtd": "reaches flash memory of the host", "msr": "sets registers of the processors", "vc": "is a screen of the host",
	"vfio": memory,
}

// lastTerminal is the last minor number of the virtual terminals of the host, whose major number is 4.
const lastTerminal = 63

// refuses returns why no node gets a device, or "". A character device with disks below it, such as a
// USB stick, would reach them while the host uses them.
func (h Host) refuses(n Number) string {
	if n.Block {
		return ""
	}
	if why := refusedNumbers[[2]uint32{n.Major, n.Minor}]; why != "" {
		return why
	}
	if n.Major == 4 && n.Minor <= lastTerminal {
		return "is a terminal of the host"
	}
	if of, err := os.Readlink(filepath.Join(h.sysPath(n), "subsystem")); err == nil {
		if why := refusedClasses[filepath.Base(of)]; why != "" {
			return why
		}
	}
	dir, err := filepath.EvalSymlinks(h.sysPath(n))
	if err != nil {
		return "" // the driver is loaded when the device is opened
	}
	entries, _ := os.ReadDir(filepath.Join(h.Sys, "block"))
	for _, disk := range entries {
		if at, err := filepath.EvalSymlinks(filepath.Join(h.Sys, "block", disk.Name())); err == nil &&
			strings.HasPrefix(at, dir+"/") {
			return "reaches the disk " + disk.Name() + " without the kernel's checks"
		}
	}
	return ""
}

// sysPath returns the directory of a device in sysfs.
func (h Host) sysPath(n Number) string {
	return filepath.Join(h.Sys, "dev", n.kind(), fmt.Sprintf("%d:%d", n.Major, n.Minor))
}

// wholeDisk returns the number of the disk that a block device is a partition of, or its own.
func (h Host) wholeDisk(n Number) Number {
	dir, err := filepath.EvalSymlinks(h.sysPath(n))
	if err != nil || !n.Block {
		return n
	}
	if _, err := os.Stat(filepath.Join(dir, "partition")); err != nil {
		return n
	}
	text, _ := rawfile.ReadFile(filepath.Join(filepath.Dir(dir), "dev"))
	whole := Number{Block: true}
	if _, err := fmt.Sscanf(string(text), "%d:%d", &whole.Major, &whole.Minor); err != nil {
		return n
	}
	return whole
}

func unable(format string, args ...any) *problem.Problem {
	return problem.New(problem.Unable, format, args...)
}
