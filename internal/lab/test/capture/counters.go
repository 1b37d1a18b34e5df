package capture

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"orrery/internal/host"
	"orrery/internal/lab/place"
)

// Counters are the kernel's counts of dropped packets. Each name begins with the place of the drop.
type Counters map[string]uint64

// Where packets may be dropped, in the order of their way. Names of counters begin with these
// words.
const (
	atSender      = "sender"      // never sent
	atNIC         = "nic"         // no room in the ring of an interface
	atSoftnet     = "softnet"     // no room in the backlog of a processor
	atLink        = "link"        // dropped by a bridge, veth or macvlan
	atIP          = "ip"          // fragments that were never reassembled
	atSocket      = "socket"      // no room in the socket buffer
	atApplication = "application" // delivered, but the heap was never complete
	atUnknown     = "unknown"     // in no counter
)

// since returns how much the counters grew after an earlier reading. Counters of interfaces that
// disappeared or were created in between are omitted.
func (c Counters) since(before Counters) Counters {
	d := Counters{}
	for name, now := range c {
		if old, ok := before[name]; ok && now > old {
			d[name] = now - old
		}
	}
	return d
}

// sum adds the counters of dropped packets whose names begin with where.
func (c Counters) sum(where string) (n uint64) {
	for name, value := range c {
		if strings.HasPrefix(name, where+" ") && !strings.HasSuffix(name, timeSqueeze) {
			n += value
		}
	}
	return n
}

// readCounters reads all counters that may count the packets of a trial: those of the host's interfaces
// and processors, and those in the place.
func readCounters(ctx context.Context, near, far *place.Place) (Counters, error) {
	c := Counters{}
	for _, link := range append(append([]string{}, near.HostLinks...), far.HostLinks...) {
		c.statistics(filepath.Join("/sys/class/net", link))
		c.readDriver(ctx, link)
	}
	softnet, err := os.ReadFile("/proc/net/softnet_stat")
	if err != nil {
		return nil, err
	}
	c.softnet(softnet)
	for _, p := range []*place.Place{near, far} {
		files := []string{"/proc/net/snmp"}
		if p.Node != "" {
			files = append(files, "/proc/net/dev")
		}
		text, err := place.Output(ctx, p, append([]string{"cat"}, files...)...)
		if err != nil {
			return nil, err
		}
		if p == near {
			c.snmp(text)
		}
		c.devices(p.Name, text)
	}
	return c, nil
}

// timeSqueeze is the suffix of a counter that does not count packets: how often a processor had more
// work than its time slice for packets allowed.
const timeSqueeze = "squeezed"

// softnet parses /proc/net/softnet_stat. It has a line of hexadecimal numbers for each processor:
// processed, dropped, squeezed, …
func (c Counters) softnet(text []byte) {
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) < 3 {
			continue
		}
		for i, name := range []string{1: "dropped", 2: timeSqueeze} {
			if n, err := strconv.ParseUint(fields[i], 16, 64); err == nil && name != "" {
				c[atSoftnet+" "+name] += n
			}
		}
	}
}

// snmp parses /proc/net/snmp. It has a line of names and a line of numbers for each protocol.
func (c Counters) snmp(text []byte) {
	var names []string
	for scan := bufio.NewScanner(bytes.NewReader(text)); scan.Scan(); {
		fields := strings.Fields(scan.Text())
		if len(fields) < 2 || fields[0] != "Udp:" && fields[0] != "Ip:" {
			continue
		}
		if len(names) == 0 || names[0] != fields[0] {
			names = fields
			continue
		}
		for i := 1; i < min(len(names), len(fields)); i++ {
			where := map[string]string{"Udp: RcvbufErrors": atSocket, "Udp: MemErrors": atSocket, "Ip: ReasmFails": atIP,
				"Ip: InDiscards": atIP}[names[0]+" "+names[i]]
			if n, err := strconv.ParseUint(fields[i], 10, 64); err == nil && where != "" {
				c[where+" "+names[i]] = n
			}
		}
	}
}

// devices parses /proc/net/dev of a place.
func (c Counters) devices(at string, text []byte) {
	for name, n := range place.ParseLinks(string(text)) {
		if name != "lo" {
			name = " " + at + " " + name + " "
			c[atLink+name+"rx_dropped"], c[atNIC+name+"rx_fifo"], c[atLink+name+"tx_dropped"] = n[3], n[4], n[11]
		}
	}
}

// statistics reads the counters of an interface of the host
// (Documentation/ABI/testing/sysfs-class-net-statistics).
func (c Counters) statistics(dir string) {
	for name, where := range map[string]string{
		"rx_missed_errors": atNIC, "rx_fifo_errors": atNIC, "rx_over_errors": atNIC,
		"rx_dropped": atLink, "tx_dropped": atLink, "rx_nohandler": atLink,
	} {
		text, err := os.ReadFile(filepath.Join(dir, "statistics", name))
		if err != nil {
			continue // the interface has moved into a node
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
			c[where+" "+filepath.Base(dir)+" "+name] = n
		}
	}
}

// readDriver reads the driver's own counters of a network card. Other interfaces have none.
func (c Counters) readDriver(ctx context.Context, link string) {
	if _, err := os.Stat(filepath.Join("/sys/class/net", link, "device")); err != nil {
		return
	}
	if out, err := place.Output(ctx, host.Local{}, "ethtool", "-S", link); err == nil {
		c.ethtool(link, out)
	}
}

// ethtool parses the output of ethtool -S and keeps the counters of packets dropped for lack of
// room. Each driver has its own names for them.
func (c Counters) ethtool(link string, text []byte) {
	for scan := bufio.NewScanner(bytes.NewReader(text)); scan.Scan(); {
		name, value, ok := strings.Cut(strings.TrimSpace(scan.Text()), ": ")
		n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
		if !ok || err != nil {
			continue
		}
		low := strings.ToLower(name)
		if strings.Contains(low, "rx") && (strings.Contains(low, "no_buf") || strings.Contains(low, "out_of_buffer") ||
			strings.Contains(low, "missed") || strings.Contains(low, "drop") || strings.Contains(low, "discard")) {
			c[atNIC+" "+link+" ethtool "+name] = n
		}
	}
}
