package xen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/host/cgroup"
)

// toolstackHere returns the Dom0 to which this program belongs.
func toolstackHere() dom0 {
	self, err := os.Executable()
	if err != nil {
		leave(err)
	}
	return dom0{filepath.Dir(filepath.Dir(self))}
}

// do runs as xl(1).
func (d dom0) do(args []string) error {
	if len(args) == 0 {
		return errors.New("xl [vfN] <subcommand> [args]")
	}
	verb := args[0]
	switch d.fault(verb) {
	case "fail":
		return fmt.Errorf("libxl: error: libxl_x.c:1:x: Domain 1:%s was to fail", verb)
	case "hang":
		time.Sleep(time.Hour)
	}
	switch {
	case verb == "list" && len(args) == 1:
		return d.list()
	case verb == "info":
		fmt.Printf("host : x\nxen_version            : 4.17.5\nnr_cpus : 2\ntotal_memory : 4096\nfree_memory            : 2048\nvirt_caps : pv hvm\n")
		return nil
	case len(args) != 2:
		return fmt.Errorf("xl: %q is not played", args)
	case verb == "create":
		return d.create(args[1])
	}
	one, err := d.domain(args[1])
	if err != nil {
		return err
	}
	switch verb {
	case "pause", "unpause":
		err := one.group().SetFrozen(verb == "pause")
		return errors.Join(err, one.group().WaitFrozen(context.Background(), verb == "pause"))
	case "shutdown":
		return one.tell(powersOff)
	case "reboot":
		return one.tell(reboots)
	case "destroy":
		return d.destroy(one)
	case "network-list":
		return one.cards()
	}
	return fmt.Errorf("xl: %q is not played", args)
}

// group returns the control group of the guest's processes, which is no node's.
func (one guestDomain) group() cgroup.Group { return cgroup.OfNode("xen-test", one.ID) }

func (one guestDomain) tell(signal unix.Signal) error { return unix.Kill(one.Guest, signal) }

// state returns the state as `xl list` prints it.
func (d dom0) state(one guestDomain) string {
	state := []byte("-b----")
	if one.group().Frozen() {
		state[2] = 'p'
	}
	if len(one.group().Processes()) == 0 && one.Guest != 0 {
		state[1], state[3] = '-', 's'
		if d.ending(one) == crashed {
			state[4] = 'c'
		}
	}
	return string(state)
}

func (d dom0) list() error {
	all, err := d.domains()
	fmt.Printf("%-40s %5s %5s %5s\t%s\t%s\n", "Name", "ID", "Mem", "VCPUs", "State", "Time(s)")
	fmt.Printf("%-40s %5d %5d %5d     %s  %8.1f\n", "Domain-0", 0, 1024, 1, "r-----", 1.0)
	for _, one := range all {
		fmt.Printf("%-40s %5d %5d %5d     %s  %8.1f\n", one.Name, one.ID, 512, 1, d.state(one), 1.0)
	}
	return err
}

func (one guestDomain) cards() error {
	fmt.Println("Idx BE Mac Addr.         handle state evt-ch   tx-/rx-ring-ref BE-path")
	for i, nic := range read(one.Config).cards() {
		fmt.Printf("%-3d 0  %s %d     %d   %d/%d   /local/domain/0/backend/vif/%d/%d\n", i, nic["mac"], i, 4, 1, 2, one.ID, i)
	}
	return nil
}

// create starts a process that creates the domain and then watches it, and waits until the guest
// runs.
func (d dom0) create(config string) error {
	ready, told, err := os.Pipe()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	half := ""
	if d.fault("create") == "half" {
		half = "half"
	}
	cmd := exec.Command(self, config, half)
	cmd.Env = append(os.Environ(), roleVariable+"="+watches)
	cmd.ExtraFiles = []*os.File{told}
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	_ = told.Close()
	var said string
	if err := json.NewDecoder(ready).Decode(&said); err != nil {
		return fmt.Errorf("libxl: error: who was to watch over the domain has ended: %w", err)
	}
	if said != "" {
		return errors.New(said)
	}
	return nil
}

// destroy ends a domain, its QEMU and its links, in any state, and then removes its record. It
// removes the name last. The process that watches the domain may do the same at that time. Then one
// of the two finds nothing to remove.
func (d dom0) destroy(one guestDomain) error {
	if err := one.group().Kill(context.Background()); err != nil {
		return err
	}
	if one.Backend > 0 {
		_ = unix.Kill(one.Backend, unix.SIGKILL)
	}
	for _, number := range one.Links {
		if link, err := netlink.LinkByIndex(number); err == nil {
			_ = netlink.LinkDel(link)
		}
	}
	cgroup.Remove(one.group())
	cgroup.RemoveEmpty("xen-test")
	return d.forget(one)
}

func (d dom0) forget(one guestDomain) error {
	lock, err := os.OpenFile(filepath.Join(d.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	if now, err := d.domain(one.Name); err != nil || now.ID != one.ID {
		return fmt.Errorf("libxl: error: libxl_domain.c:1:x: Domain %d:Non-existent domain", one.ID)
	}
	// Another destroy that was killed here may have left a directory of its own.
	ended := filepath.Join(d.dir, fmt.Sprintf("ended-%d", one.ID))
	if err := os.Rename(d.home(one.Name), ended); err != nil {
		return err
	}
	return os.RemoveAll(ended)
}

// options are the options of a domain, from a file of xl.cfg(5) as far as the engine writes it.
type options map[string][]string

var quoted = regexp.MustCompile(`"([^"]*)"`)

func read(path string) options {
	text, err := os.ReadFile(path)
	if err != nil {
		leave(err)
	}
	all := options{}
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " = ")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		all[name] = nil
		for _, found := range quoted.FindAllStringSubmatch(value, -1) {
			all[name] = append(all[name], found[1])
		}
		if !strings.Contains(value, `"`) && !strings.HasPrefix(value, "[") {
			all[name] = []string{value}
		}
	}
	return all
}

func (o options) one(name string) string {
	if len(o[name]) != 1 {
		leave(fmt.Errorf("xl.cfg: %s is %q", name, o[name]))
	}
	return o[name][0]
}

// devices returns the devices of a kind, with their settings.
func (o options) devices(name string) (all []map[string]string) {
	for _, device := range o[name] {
		settings := map[string]string{}
		for setting := range strings.SplitSeq(device, ",") {
			key, value, _ := strings.Cut(setting, "=")
			settings[key] = value
		}
		all = append(all, settings)
	}
	return all
}

func (o options) cards() []map[string]string { return o.devices("vif") }
