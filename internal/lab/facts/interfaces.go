package facts

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/safchain/ethtool"
)

// An Interface is an interface of the host in the lab's network namespace.
type Interface struct {
	Name   string `json:"name"`
	Driver string `json:"driver,omitempty"` // "veth", "bridge" … for interfaces without a device
	// Version is that of the driver, and Firmware that of the device.
	Version  string `json:"version,omitempty"`
	Firmware string `json:"firmware,omitempty"`
	Bus      string `json:"bus,omitempty"`
	MTU      int    `json:"mtu"`
	Speed    int64  `json:"speed,omitempty"` // bit/s, or 0 if unknown
	Duplex   string `json:"duplex,omitempty"`
	State    string `json:"state,omitempty"`
	Master   string `json:"master,omitempty"` // bridge or bond of which it is a part
	Queues   Queues `json:"queues,omitzero"`
	Ring     *Ring  `json:"ring,omitempty"`
	// Offloads are the enabled features, with the kernel's names, such as "rx-gro".
	Offloads   []string `json:"offloads,omitempty"`
	Interrupts int      `json:"interrupts,omitempty"` // interrupt lines of its device, or 0 if it has none
	NUMA       string   `json:"numa,omitempty"`
}

// Queues are the numbers of queues.
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

// Has reports whether an offload is enabled.
func (i Interface) Has(offload string) bool { return slices.Contains(i.Offloads, offload) }

// Interface returns the interface with a name, or false.
func (f Facts) Interface(name string) (Interface, bool) {
	for _, i := range f.Interfaces {
		if i.Name == name {
			return i, true
		}
	}
	return Interface{}, false
}

// interfaces returns the named interfaces, or all. Missing interfaces are omitted.
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
		if !h.has(dir + "/mtu") { // missing, or not an interface, such as bonding_masters
			continue
		}
		i := h.interfaceFiles(name, dir)
		if tool != nil {
			readEthtool(tool, &i)
		}
		all = append(all, i)
	}
	return all
}

// interfaceFiles reads the facts in /sys.
func (h host) interfaceFiles(name, dir string) Interface {
	i := Interface{
		Name: name, MTU: int(h.number(dir + "/mtu")), Duplex: h.read(dir + "/duplex"), State: h.read(dir + "/operstate"),
		Master: h.link(dir + "/master"), Driver: h.link(dir + "/device/driver"), Bus: h.link(dir + "/device"),
		NUMA:   h.read(dir + "/device/numa_node"),
		Queues: Queues{len(h.find(dir + "/queues/rx-*")), len(h.find(dir + "/queues/tx-*"))},
	}
	if speed := h.number(dir + "/speed"); speed > 0 { // Mbit/s, or -1 if unknown
		i.Speed = speed * 1e6
	}
	i.Interrupts = h.interrupts(dir + "/device")
	if i.NUMA == "-1" { // no NUMA node
		i.NUMA = ""
	}
	if i.Driver == "" { // the kind of an interface without a device is in its uevent file, if any
		for line := range strings.Lines(h.read(dir + "/uevent")) {
			if kind, ok := strings.CutPrefix(line, "DEVTYPE="); ok {
				i.Driver = strings.TrimSpace(kind)
			}
		}
	}
	return i
}

// interrupts counts the interrupt lines of a device. For virtio, the PCI device above has them.
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

// readEthtool adds facts that only ethtool(8) can read. Drivers support only some of the requests.
func readEthtool(tool *ethtool.Ethtool, i *Interface) {
	if d, err := tool.DriverInfo(i.Name); err == nil {
		if d.Driver != "" {
			i.Driver = d.Driver
		}
		i.Version, i.Firmware = knownOrEmpty(d.Version), knownOrEmpty(d.FwVersion)
		if bus := knownOrEmpty(d.BusInfo); bus != "" {
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

func knownOrEmpty(s string) string {
	if s == "N/A" {
		return ""
	}
	return s
}
