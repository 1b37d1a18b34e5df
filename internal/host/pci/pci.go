// Package pci lends PCI functions of the host to virtual machines (VFIO).
//
// It detaches them from the host's drivers, so that the kernel confines their access to memory, and
// attaches them again afterwards.
package pci

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"orrery/internal/host"
	"orrery/internal/observe"
)

// A Bus contains the PCI functions of a machine, and their loans.
type Bus struct {
	Sys   string                        // the mount point of sysfs
	Loans string                        // directory with a file for each lent function, named by its address
	Load  func(module string) error     // loads a kernel module
	Order func(file, text string) error // writes to a file of sysfs
}

// Local is the Bus of this machine. It is the same for all state directories.
var Local = Bus{Sys: "/sys", Loans: "/run/orrery/pci", Load: loadModule, Order: writeSysfs}

func loadModule(module string) error {
	return host.Program(context.Background(), "modprobe", module).Run()
}

func writeSysfs(file, text string) error { return os.WriteFile(file, []byte(text), 0) }

// vfio is the driver for lent functions.
const vfio = "vfio-pci"

// A Binding is the record of a function, written before the function is detached from its driver.
type Binding struct {
	Holder string `json:"holder"`           // SITE/ID of a node
	Driver string `json:"driver,omitempty"` // former driver, or "" if there was none
}

func (b Bus) devicePath(address string) string {
	return filepath.Join(b.Sys, "bus/pci/devices", address)
}

func (b Bus) bindingPath(address string) string { return filepath.Join(b.Loans, address) }

// Functions returns the functions of the machine, or none if it has no PCI bus.
func (b Bus) Functions() ([]observe.PCIFunction, error) {
	entries, err := os.ReadDir(filepath.Join(b.Sys, "bus/pci/devices"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all := make([]observe.PCIFunction, 0, len(entries))
	for _, e := range entries {
		all = append(all, b.readFunction(e.Name()))
	}
	return all, nil
}

// readFunction reads the state of a function.
func (b Bus) readFunction(address string) observe.PCIFunction {
	f := observe.PCIFunction{Address: address, Driver: b.linkTarget(address, "driver"),
		Group: b.linkTarget(address, "iommu_group")}
	class, _ := os.ReadFile(filepath.Join(b.devicePath(address), "class"))
	f.Bridge = strings.HasPrefix(string(class), "0x0604")
	if loan, err := host.ReadJSON[Binding](b.bindingPath(address)); err == nil {
		f.Holder = loan.Holder
	}
	return f
}

// linkTarget returns the last part of a link in a function's directory, or "" if there is none.
func (b Bus) linkTarget(address, name string) string {
	to, err := os.Readlink(filepath.Join(b.devicePath(address), name))
	if err != nil {
		return ""
	}
	return filepath.Base(to)
}

// Directory returns the directory of a function in sysfs. The entries below bus/pci are links to
// it.
func (b Bus) Directory(address string) (string, error) {
	return filepath.EvalSymlinks(b.devicePath(address))
}
