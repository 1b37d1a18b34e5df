// Package pci lends PCI functions of the host to virtual machines: it unbinds them from the host's
// drivers, so that the kernel confines their access to memory (VFIO), and returns them afterwards.
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

// A Bus is the functions of a machine, and the loans of them.
type Bus struct {
	Sys   string                        // where the kernel tells of them and takes orders
	Loans string                        // a directory: a file for each function that is lent, by its address
	Load  func(module string) error     // loads a driver of the kernel
	Order func(file, text string) error // writes an order to the kernel
}

// Here is that of this machine. It is one for the machine, whatever state directories there are.
var Here = Bus{Sys: "/sys", Loans: "/run/orrery/pci", Load: load, Order: order}

func load(module string) error { return host.Program(context.Background(), "modprobe", module).Run() }

func order(file, text string) error { return os.WriteFile(file, []byte(text), 0) }

// vfio is the driver that lends.
const vfio = "vfio-pci"

// A Loan is what is written down of a function before it is taken from its driver.
type Loan struct {
	Holder string `json:"holder"`           // who has it: SITE/ID of a node
	Driver string `json:"driver,omitempty"` // to which it goes back; "": it had none
}

func (b Bus) device(address string) string { return filepath.Join(b.Sys, "bus/pci/devices", address) }

func (b Bus) loan(address string) string { return filepath.Join(b.Loans, address) }

// Functions returns those of the machine. One without bus has none.
func (b Bus) Functions() ([]observe.Function, error) {
	entries, err := os.ReadDir(filepath.Join(b.Sys, "bus/pci/devices"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all := make([]observe.Function, 0, len(entries))
	for _, e := range entries {
		all = append(all, b.look(e.Name()))
	}
	return all, nil
}

// look sees how a function is.
func (b Bus) look(address string) observe.Function {
	f := observe.Function{Address: address, Driver: b.link(address, "driver"), Group: b.link(address, "iommu_group")}
	class, _ := os.ReadFile(filepath.Join(b.device(address), "class"))
	f.Bridge = strings.HasPrefix(string(class), "0x0604")
	if loan, err := host.ReadJSON[Loan](b.loan(address)); err == nil {
		f.Holder = loan.Holder
	}
	return f
}

// link returns the last word of a link in a function's directory; "" if there is none.
func (b Bus) link(address, name string) string {
	to, err := os.Readlink(filepath.Join(b.device(address), name))
	if err != nil {
		return ""
	}
	return filepath.Base(to)
}

// Directory is where the kernel tells of a function; what is below bus/pci are links.
func (b Bus) Directory(address string) (string, error) {
	return filepath.EvalSymlinks(b.device(address))
}
