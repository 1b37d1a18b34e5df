package pci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// BindVFIO detaches PCI functions from their drivers for a holder, all or none. It returns the devices
// below /dev by which the holder accesses them, each once. Before each change it records the former
// driver, so that Release can restore it after a kill.
func (b Bus) BindVFIO(ctx context.Context, holder string, addresses []string) (devices []string, err error) {
	if len(addresses) == 0 {
		return nil, nil
	}
	unlock, err := b.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := b.loadDriver(); err != nil {
		return nil, problem.New(problem.Unable, "the kernel has no driver %s, which lends PCI functions to nodes",
			vfio).Because(err).
			Try("modprobe %s; or install a kernel that has it", vfio)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.release(holder))
		}
	}()
	groups := map[string]bool{}
	for _, address := range addresses {
		if err := b.bindVFIO(holder, address); err != nil {
			return nil, err
		}
		if group := b.linkTarget(address, "iommu_group"); !groups[group] {
			groups[group] = true
			devices = append(devices, "vfio/"+group)
		}
	}
	return append(devices, "vfio/vfio"), nil
}

func (b Bus) bindVFIO(holder, address string) error {
	f := b.readFunction(address)
	switch {
	case f.Holder != "" && f.Holder != holder:
		return problem.New(problem.Unable, "PCI function %s is lent to the node %s", address, f.Holder).
			Try("stop that node first")
	case f.Group == "":
		return NoIOMMU(address)
	case f.Holder == "": // otherwise a run that was killed has recorded it
		if err := host.WriteJSON(b.bindingPath(address), 0o600, Binding{Holder: holder, Driver: f.Driver}); err != nil {
			return err
		}
	}
	if err := b.bind(address, vfio); err != nil {
		return problem.New(problem.Failed, "PCI function %s could not be detached from driver %q", address, f.Driver).
			Because(err).
			Try("dmesg shows the kernel's messages about it")
	}
	return nil
}

// NoIOMMU returns the problem for a function without an IOMMU, which could access all of the host's
// memory.
func NoIOMMU(address string) error {
	return problem.New(problem.Unable, "PCI function %s is behind no IOMMU, and would reach all of the host's memory",
		address).
		Try("turn the IOMMU on: in the firmware (VT-d, AMD-Vi), and intel_iommu=on on the kernel's command line")
}

// Release returns a holder's functions to the drivers from which they were detached.
func (b Bus) Release(ctx context.Context, holder string) error {
	if _, err := os.Lstat(b.Loans); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return b.release(holder)
}

func (b Bus) release(holder string) error {
	entries, err := os.ReadDir(b.Loans)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		loan, err := host.ReadJSON[Binding](b.bindingPath(e.Name()))
		if err != nil || loan.Holder != holder {
			continue // also the lock file, which is not a loan
		}
		if err := b.bind(e.Name(), loan.Driver); err != nil {
			errs = append(errs, problem.New(problem.Failed, "PCI function %s could not be returned to driver %q", e.Name(),
				loan.Driver).Because(err).
				Try("dmesg shows the kernel's messages about it"))
			continue
		}
		errs = append(errs, os.Remove(b.bindingPath(e.Name())))
	}
	return errors.Join(errs...)
}

// bind binds a function to a driver, or to none if driver is "". It ignores a function that no
// longer exists.
func (b Bus) bind(address, driver string) error {
	device := b.devicePath(address)
	if _, err := os.Stat(device); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	current := b.linkTarget(address, "driver")
	if current == driver && driver == vfio {
		return nil
	}
	override := "\n" // no override: any driver may bind it
	if driver == vfio {
		override = vfio
	}
	if err := b.Order(filepath.Join(device, "driver_override"), override); err != nil {
		return err
	}
	if current == driver {
		return nil
	}
	if current != "" {
		if err := b.Order(filepath.Join(device, "driver", "unbind"), address); err != nil {
			return err
		}
	}
	if driver == "" {
		return nil
	}
	probe := filepath.Join(b.Sys, "bus/pci/drivers_probe")
	if driver != vfio {
		probe = filepath.Join(b.Sys, "bus/pci/drivers", driver, "bind")
	}
	if err := b.Order(probe, address); err != nil {
		return err
	}
	if bound := b.linkTarget(address, "driver"); bound != driver {
		return fmt.Errorf("its driver is now %q", bound)
	}
	return nil
}

// loadDriver loads the vfio driver, unless it is loaded.
func (b Bus) loadDriver() error {
	if _, err := os.Stat(filepath.Join(b.Sys, "bus/pci/drivers", vfio)); err == nil {
		return nil
	}
	return b.Load(vfio)
}

// lock takes the lock of all loans.
func (b Bus) lock(ctx context.Context) (unlock func(), err error) {
	l, err := host.WaitLock(ctx, filepath.Join(b.Loans, ".lock"), host.Exclusive, "the lock of lent PCI functions")
	if err != nil {
		return nil, err
	}
	return l.Release, nil
}
