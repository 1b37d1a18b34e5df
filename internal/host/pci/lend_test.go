package pci

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// kernel imitates the kernel's part of /sys, as in drivers/pci/pci-sysfs.c.
type kernel struct {
	t     *testing.T
	sys   string
	fails string // writing to a file of this name fails
	given []string
}

func newBus(t *testing.T) (Bus, *kernel) {
	t.Helper()
	dir := t.TempDir()
	k := &kernel{t: t, sys: filepath.Join(dir, "sys")}
	for _, d := range []string{"e1000e", "nvme"} {
		must(t, os.MkdirAll(k.at("bus/pci/drivers", d), 0o755))
	}
	b := Bus{Sys: k.sys, Loans: filepath.Join(dir, "run"), Order: k.order}
	b.Load = func(module string) error { return os.MkdirAll(k.at("bus/pci/drivers", module), 0o755) }
	return b, k
}

func (k *kernel) at(parts ...string) string {
	return filepath.Join(append([]string{k.sys}, parts...)...)
}

// add adds a function to the bus.
func (k *kernel) add(address, class, driver, group string) {
	k.t.Helper()
	real := k.at("devices/pci0000:00", address)
	must(k.t, os.MkdirAll(real, 0o755))
	must(k.t, os.MkdirAll(k.at("bus/pci/devices"), 0o755))
	must(k.t, os.Symlink("../../../devices/pci0000:00/"+address, k.at("bus/pci/devices", address)))
	must(k.t, os.WriteFile(filepath.Join(real, "class"), []byte(class+"\n"), 0o644))
	if group != "" {
		must(k.t, os.Symlink("../../../kernel/iommu_groups/"+group, filepath.Join(real, "iommu_group")))
	}
	if driver != "" {
		k.bind(address, driver)
	}
}

func (k *kernel) bind(address, driver string) {
	must(k.t, os.Symlink("../../../bus/pci/drivers/"+driver, k.at("devices/pci0000:00", address, "driver")))
}

func (k *kernel) order(file, text string) error {
	k.given = append(k.given, strings.TrimPrefix(file, k.sys+"/")+" "+strings.TrimSpace(text))
	name := filepath.Base(file)
	if name == k.fails {
		return &os.PathError{Op: "write", Path: file, Err: errors.New("device or resource busy")}
	}
	device := func() string { return k.at("devices/pci0000:00", text) }
	switch name {
	case "driver_override":
		return os.WriteFile(file, []byte(text), 0o644)
	case "unbind":
		return os.Remove(filepath.Join(device(), "driver"))
	case "drivers_probe":
		driver, err := os.ReadFile(filepath.Join(device(), "driver_override"))
		if err == nil {
			k.bind(text, string(driver))
		}
		return err
	case "bind":
		k.bind(text, filepath.Base(filepath.Dir(file)))
		return nil
	}
	return errors.New("no such file: " + file)
}

func (b Bus) drivers(t *testing.T) string {
	t.Helper()
	all, err := b.Functions()
	must(t, err)
	var words []string
	for _, f := range all {
		words = append(words, f.Address+"="+f.Driver+":"+f.Holder)
	}
	return strings.Join(words, " ")
}

const (
	card  = "0000:03:00.0"
	other = "0000:03:00.1"
	disk  = "0000:04:00.0"
)

// TestFunctions checks the fields of functions.
func TestFunctions(t *testing.T) {
	b, k := newBus(t)
	if all, err := b.Functions(); len(all) > 0 || err != nil {
		t.Errorf("a machine without bus has %v, %v", all, err)
	}
	k.add(card, "0x020000", "e1000e", "7")
	k.add("0000:00:1c.0", "0x060400", "", "")
	want := []observe.PCIFunction{{Address: "0000:00:1c.0", Bridge: true}, {Address: card, Driver: "e1000e", Group: "7"}}
	if all, err := b.Functions(); !slices.Equal(all, want) || err != nil {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestLend checks that functions are detached from their drivers and returned to them, that their
// holder is reported, and that no other node can get them.
func TestLend(t *testing.T) {
	b, k := newBus(t)
	k.add(card, "0x020000", "e1000e", "7")
	k.add(other, "0x020000", "", "7")
	k.add(disk, "0x010802", "nvme", "8")
	devices, err := b.BindVFIO(t.Context(), "karoo/101", []string{card, other})
	must(t, err)
	if want := []string{"vfio/7", "vfio/vfio"}; !slices.Equal(devices, want) {
		t.Errorf("its devices are %v", devices)
	}
	const lent = card + "=vfio-pci:karoo/101 " + other + "=vfio-pci:karoo/101 " + disk + "=nvme:"
	if got := b.drivers(t); got != lent {
		t.Error(got)
	}
	if _, err := b.BindVFIO(t.Context(), "karoo/102",
		[]string{disk, card}); problem.ExitCode(err) != int(problem.Unable) ||
		!strings.Contains(err.Error(), "lent to the node karoo/101") {
		t.Error(err)
	}
	if got := b.drivers(t); got != lent {
		t.Errorf("after another has asked: %s", got)
	}
	must(t, b.Release(t.Context(), "karoo/102"))
	if _, err = b.BindVFIO(t.Context(), "karoo/101", []string{card, other}); err != nil {
		t.Errorf("again, as after a kill: %v", err)
	}
	must(t, b.Release(t.Context(), "karoo/101"))
	if got := b.drivers(t); got != card+"=e1000e: "+other+"=: "+disk+"=nvme:" {
		t.Error(got)
	}
	must(t, b.Release(t.Context(), "karoo/101"))
}

// TestLentForGood checks that a function that the user has bound to vfio-pci stays bound to it.
func TestLentForGood(t *testing.T) {
	b, k := newBus(t)
	k.add(card, "0x020000", "vfio-pci", "7")
	_, err := b.BindVFIO(t.Context(), "karoo/101", []string{card})
	must(t, err)
	must(t, b.Release(t.Context(), "karoo/101"))
	if got := b.drivers(t); got != card+"=vfio-pci:" || len(k.given) > 0 {
		t.Errorf("%s after %v", got, k.given)
	}
}

// TestNoGroup checks that a function without an IOMMU cannot be lent.
func TestNoGroup(t *testing.T) {
	b, k := newBus(t)
	k.add(card, "0x020000", "e1000e", "")
	if _, err := b.BindVFIO(t.Context(), "karoo/101", []string{card}); problem.ExitCode(err) != int(problem.Unable) ||
		!strings.Contains(err.Error(), "intel_iommu=on") {
		t.Error(err)
	}
	if got := b.drivers(t); got != card+"=e1000e:" {
		t.Error(got)
	}
}

// TestLendKilled checks that Release finds the function's driver, whichever write to the kernel was
// the last before a kill.
func TestLendKilled(t *testing.T) {
	for _, last := range []string{"driver_override", "unbind", "drivers_probe"} {
		b, k := newBus(t)
		k.add(card, "0x020000", "e1000e", "7")
		killed := errors.New("killed")
		b.Order = func(file, text string) error {
			if filepath.Base(file) == last {
				panic(killed) // as after a kill, nothing else runs, not even the rollback
			}
			return k.order(file, text)
		}
		func() {
			defer func() {
				if recover() != killed { //nolint:errorlint // the very same
					t.Errorf("%s is never ordered", last)
				}
			}()
			must(t, os.MkdirAll(b.Loans, 0o700))
			must(t, b.loadDriver())
			_ = b.bindVFIO("karoo/101", card)
		}()
		b.Order = k.order
		must(t, b.Release(t.Context(), "karoo/101"))
		if got := b.drivers(t); got != card+"=e1000e:" {
			t.Errorf("killed at %s: %s", last, got)
		}
		if text, _ := os.ReadFile(filepath.Join(k.at("devices/pci0000:00", card),
			"driver_override")); strings.TrimSpace(string(text)) != "" {
			t.Errorf("killed at %s: driver_override is %q", last, text)
		}
	}
}

// TestLendFails checks that all functions are returned if the kernel refuses one of several. If it
// refuses to take one back, the loan stays recorded for the next call.
func TestLendFails(t *testing.T) {
	for _, fails := range []string{"driver_override", "unbind", "drivers_probe"} {
		b, k := newBus(t)
		k.add(card, "0x020000", "e1000e", "7")
		k.add(disk, "0x010802", "nvme", "8")
		k.fails = fails
		if _, err := b.BindVFIO(t.Context(), "karoo/101",
			[]string{card, disk}); problem.ExitCode(err) != int(problem.Failed) ||
			!strings.Contains(err.Error(), "busy") {
			t.Errorf("%s: %v", fails, err)
		}
		k.fails = ""
		must(t, b.Release(t.Context(), "karoo/101"))
		if got := b.drivers(t); got != card+"=e1000e: "+disk+"=nvme:" {
			t.Errorf("%s: %s", fails, got)
		}
	}
	b, k := newBus(t)
	k.add(card, "0x020000", "e1000e", "7")
	_, err := b.BindVFIO(t.Context(), "karoo/101", []string{card})
	must(t, err)
	k.fails = "bind"
	if err := b.Release(t.Context(), "karoo/101"); problem.ExitCode(err) != int(problem.Failed) ||
		!strings.Contains(err.Error(), `returned to driver "e1000e"`) {
		t.Error(err)
	}
	if loan, err := host.ReadJSON[Binding](b.bindingPath(card)); err != nil || loan.Driver != "e1000e" {
		t.Errorf("%+v, %v", loan, err)
	}
	k.fails = ""
	must(t, b.Release(t.Context(), "karoo/101"))
	if got := b.drivers(t); got != card+"=e1000e:" {
		t.Error(got)
	}
}

// TestGone checks that the loan of an unplugged function is removed.
func TestGone(t *testing.T) {
	b, k := newBus(t)
	k.add(card, "0x020000", "e1000e", "7")
	_, err := b.BindVFIO(t.Context(), "karoo/101", []string{card})
	must(t, err)
	must(t, os.Remove(k.at("bus/pci/devices", card)))
	must(t, b.Release(t.Context(), "karoo/101"))
	if _, err := os.Stat(b.bindingPath(card)); err == nil {
		t.Error("it is lent")
	}
}

// TestNoDriver checks the error of a kernel without vfio-pci.
func TestNoDriver(t *testing.T) {
	b, k := newBus(t)
	k.add(card, "0x020000", "e1000e", "7")
	b.Load = func(string) error { return errors.New("module not found") }
	if _, err := b.BindVFIO(t.Context(), "karoo/101", []string{card}); problem.ExitCode(err) != int(problem.Unable) ||
		!strings.Contains(err.Error(), "modprobe vfio-pci") {
		t.Error(err)
	}
}
