package facts

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/safchain/ethtool"
)

// An Interface is one of the host's, in the network namespace of the lab.
type Interface struct {
	Name   string `json:"name"`
	Driver string `json:"driver,omitempty"` // "veth", "bridge" … for those without a device
	// Version is the driver's, and Firmware the device's.
	Version  string `json:"version,omitempty"`
	Firmware string `json:"firmware,omitempty"`
	Bus      string `json:"bus,omitempty"`
	MTU      int    `json:"mtu"`
	Speed    int64  `json:"speed,omitempty"` // bit/s; 0: it does not tell
	Duplex   string `json:"duplex,omitempty"`
	State    string `json:"state,omitempty"`
	Master   string `json:"master,omitempty"` // bridge or bond that it belongs to
	Queues   Queues `json:"queues,omitzero"`
	Ring     *Ring  `json:"ring,omitempty"`
	// Offloads are the features that are on, by the kernel's names, such as "rx-gro".
	Offloads   []string `json:"offloads,omitempty"`
	Interrupts int      `json:"interrupts,omitempty"` // lines of its device; 0: none of its own
	NUMA       string   `json:"numa,omitempty"`
}

// Queues are how many there are.
type Queues struct {
	Receive int `json:"rx,omitempty"`
	Send    int `json:"tx,omitempty"`
}

// A Ring is in packets.
type Ring struct {
	Receive    uint32 `json:"rx"`
	MaxReceive uint32 `json:"rx_most"`
	Send       uint32 `json:"tx"`
	MaxSend    uint32 `json:"tx_most"`
}

// Has reports whether an offload is on.
func (i Interface) Has(offload string) bool { return slices.Contains(i.Offloads, offload) }

// Interface returns the one of a name.
func (f Facts) Interface(name string) (Interface, bool) {
	for _, i := range f.Interfaces {
		if i.Name == name {
			return i, true
		}
	}
	return Interface{}, false
}

// interfaces returns those that are named, or all. One that is not there is left out.
func (h host) interfaces(names []string) []Interface {
	if len(names) == 0 {
		names = h.names("sys/class/net")
	}
	var tool *ethtool.Ethtool
	if h.live {
		if t, err := ethtool.NewEthtool(); err == nil {
			tool = t
			defer t.Close()
		}
	}
	var all []Interface
	for _, name := range names {
		dir := filepath.Join("sys/class/net", name)
		if !h.has(dir + "/mtu") { // not there, or no interface, as bonding_masters
			continue
		}
		i := h.interfaceFiles(name, dir)
		if tool != nil {
			ask(tool, &i)
		}
		all = append(all, i)
	}
	return all
}

// interfaceFiles reads what /sys tells.
func (h host) interfaceFiles(name, dir string) Interface {
	i := Interface{
		Name: name, MTU: int(h.number(dir + "/mtu")), Duplex: h.read(dir + "/duplex"), State: h.read(dir + "/operstate"),
		Master: h.link(dir + "/master"), Driver: h.link(dir + "/device/driver"), Bus: h.link(dir + "/device"),
		NUMA:   h.read(dir + "/device/numa_node"),
		Queues: Queues{len(h.find(dir + "/queues/rx-*")), len(h.find(dir + "/queues/tx-*"))},
	}
	if speed := h.number(dir + "/speed"); speed > 0 { // Mbit/s; -1: unknown
		i.Speed = speed * 1e6
	}
	i.Interrupts = h.interrupts(dir + "/device")
	if i.NUMA == "-1" { // none
		i.NUMA = ""
	}
	if i.Driver == "" { // the kind of one without a device is in its uevent, where it has any
		for line := range strings.Lines(h.read(dir + "/uevent")) {
			if kind, ok := strings.CutPrefix(line, "DEVTYPE="); ok {
				i.Driver = strings.TrimSpace(kind)
			}
		}
	}
	return i
}

// interrupts counts the lines of a device. Virtio's hangs below the PCI device that has them.
func (h host) interrupts(device string) int {
	real, err := filepath.EvalSymlinks(filepath.Join(h.root, device))
	if err != nil {
		return 0
	}
	for _, dir := range []string{real, filepath.Dir(real)} {
		if lines, _ := filepath.Glob(filepath.Join(dir, "msi_irqs", "*")); len(lines) > 0 {
			return len(lines)
		}
	}
	return 0
}

// ask adds what only ethtool(8) knows. Drivers answer only some of its questions.
func ask(tool *ethtool.Ethtool, i *Interface) {
	if d, err := tool.DriverInfo(i.Name); err == nil {
		if d.Driver != "" {
			i.Driver = d.Driver
		}
		i.Version, i.Firmware = known(d.Version), known(d.FwVersion)
		if bus := known(d.BusInfo); bus != "" {
			i.Bus = bus
		}
	}
	if r, err := tool.GetRing(i.Name); err == nil && (r.RxMaxPending > 0 || r.TxMaxPending > 0) {
		i.Ring = &Ring{r.RxPending, r.RxMaxPending, r.TxPending, r.TxMaxPending}
	}
	features, err := tool.Features(i.Name)
	if err != nil {
		return
	}
	for name, on := range features {
		if on {
			i.Offloads = append(i.Offloads, name)
		}
	}
	slices.Sort(i.Offloads)
}

func known(s string) string {
	if s == "N/A" {
		return ""
	}
	return s
}
