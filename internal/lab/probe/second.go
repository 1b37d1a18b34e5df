// Package probe records the host's counters while the lab's tests run.
//
// Once a second it reads the counters of processors, control groups, network, disks and stalls, and
// records the differences. It is designed not to disturb the measurement: files stay open and are
// read with pread(2) into buffers that are reused, and unchanged values are not recorded.
//
// The package has its own small parsers. github.com/prometheus/procfs, which package facts uses,
// opens each file again and creates objects for every line. BenchmarkProcfs and BenchmarkSecond
// compare both.
package probe

import "time"

// A Second is what happened on the host between two readings. The values are differences of
// counters, so zeros are omitted from JSON. Times are in seconds, sizes in bytes.
type Second struct {
	At   time.Time `json:"at"`   // of the later reading
	Took float64   `json:"took"` // seconds since the previous reading
	// CPU is the time of the whole host. Its Total is about Took times the number of processors.
	CPU  Times       `json:"cpu,omitzero"`
	Each []Processor `json:"each,omitempty"` // by processor, only those that are online
	// Cgroups is keyed by the names in Options.Cgroups. Groups that used no time or do not exist
	// are omitted.
	Cgroups map[string]Usage `json:"cgroups,omitempty"`
	// Self is the time of the lab's own process. Children is the total time of those children that
	// ended in this second and were waited for (getrusage(2)). Over a trial that starts and ends
	// programs, it is the time of these programs.
	Self     Usage `json:"self,omitzero"`
	Children Usage `json:"children,omitzero"`

	Switches   uint64  `json:"switches,omitempty"`   // context switches
	Interrupts uint64  `json:"interrupts,omitempty"` // of all kinds
	Forks      uint64  `json:"forks,omitempty"`      // created processes and threads
	Net        []Link  `json:"net,omitempty"`        // interfaces with traffic, in the lab's network namespace
	Softnet    Softnet `json:"softnet,omitzero"`
	UDP        UDP     `json:"udp,omitzero"`
	TCP        TCP     `json:"tcp,omitzero"`
	Disks      []Disk  `json:"disks,omitempty"` // disks with activity
	Stalls     Stalls  `json:"stalls,omitzero"`
	Swap       Swap    `json:"swap,omitzero"`
	// how often processors were throttled because of their temperature
	Throttled uint64 `json:"throttled,omitempty"`
	Load      Load   `json:"load,omitzero"`
}

// Times are seconds of processor time by use (proc_stat(5)), which the kernel counts in hundredths.
// The time of guests is part of User and Nice.
type Times struct {
	User    float64 `json:"user,omitempty"`
	Nice    float64 `json:"nice,omitempty"`
	System  float64 `json:"system,omitempty"`
	Idle    float64 `json:"idle,omitempty"`
	Wait    float64 `json:"wait,omitempty"` // idle, with disk requests in progress
	IRQ     float64 `json:"irq,omitempty"`
	SoftIRQ float64 `json:"softirq,omitempty"`
	Steal   float64 `json:"steal,omitempty"` // the hypervisor ran something else
	Guest   float64 `json:"guest,omitempty"` // part of User and Nice, in virtual machines of this host
}

// Busy returns the time in which the processors worked for this host.
func (t Times) Busy() float64 { return t.User + t.Nice + t.System + t.IRQ + t.SoftIRQ }

// Total returns the sum of all times, including stolen time.
func (t Times) Total() float64 { return t.Busy() + t.Idle + t.Wait + t.Steal }

// Share returns the busy share of the total, from 0 to 1, or 0 if no time was counted.
func (t Times) Share() float64 {
	if total := t.Total(); total > 0 {
		return t.Busy() / total
	}
	return 0
}

// Add returns the sum of t and o.
func (t Times) Add(o Times) Times {
	return Times{
		t.User + o.User, t.Nice + o.Nice, t.System + o.System, t.Idle + o.Idle, t.Wait + o.Wait,
		t.IRQ + o.IRQ, t.SoftIRQ + o.SoftIRQ, t.Steal + o.Steal, t.Guest + o.Guest,
	}
}

// A Processor is the time of one processor of the host, with its number.
type Processor struct {
	ID int `json:"id"`
	Times
}

// Usage is processor time of processes in seconds.
type Usage struct {
	User   float64 `json:"user,omitempty"`
	System float64 `json:"system,omitempty"`
}

// Total returns the sum of both.
func (u Usage) Total() float64 { return u.User + u.System }

// Add returns the sum of u and o.
func (u Usage) Add(o Usage) Usage { return Usage{u.User + o.User, u.System + o.System} }

// A Link is an interface of the host (/proc/net/dev). What a node sends is received by its end on
// the host.
type Link struct {
	Name     string  `json:"name"`
	Received Traffic `json:"rx,omitzero"`
	Sent     Traffic `json:"tx,omitzero"`
}

// Traffic is the traffic in one direction. Dropped includes what did not fit in a NIC's ring
// (rx_missed_errors).
type Traffic struct {
	Bytes   uint64 `json:"bytes,omitempty"`
	Packets uint64 `json:"packets,omitempty"`
	Errors  uint64 `json:"errors,omitempty"`
	Dropped uint64 `json:"dropped,omitempty"`
	FIFO    uint64 `json:"fifo,omitempty"`
}

// Softnet holds the counters of the kernel's receive queues, over all processors and network
// namespaces (/proc/net/softnet_stat).
type Softnet struct {
	Processed uint64 `json:"processed,omitempty"`
	// net.core.netdev_max_backlog was reached; packets of veth use this queue
	Dropped  uint64 `json:"dropped,omitempty"`
	Squeezed uint64 `json:"squeezed,omitempty"` // net.core.netdev_budget was used up while packets were left
	Steered  uint64 `json:"steered,omitempty"`  // woken by another processor (RPS)
	Limited  uint64 `json:"limited,omitempty"`  // dropped by the flow limit
}

// UDP holds counters of the lab's network namespace (/proc/net/snmp). Those of nodes are in their
// own.
type UDP struct {
	Received    uint64 `json:"received,omitempty"`
	Sent        uint64 `json:"sent,omitempty"`
	NoPort      uint64 `json:"no_port,omitempty"`
	Errors      uint64 `json:"errors,omitempty"`       // includes all of the following except FullSend
	FullReceive uint64 `json:"full_receive,omitempty"` // RcvbufErrors: the socket's buffer was full
	FullSend    uint64 `json:"full_send,omitempty"`    // SndbufErrors
	Checksum    uint64 `json:"checksum,omitempty"`
	Memory      uint64 `json:"memory,omitempty"` // net.ipv4.udp_mem was used up
}

// TCP holds counters of the lab's network namespace only.
type TCP struct {
	Received uint64 `json:"received,omitempty"` // segments
	Sent     uint64 `json:"sent,omitempty"`
	Resent   uint64 `json:"resent,omitempty"`
	Errors   uint64 `json:"errors,omitempty"`
}

// A Disk is a block device (diskstats in the kernel's Documentation/admin-guide/iostats.rst).
type Disk struct {
	Name         string  `json:"name"`
	Reads        uint64  `json:"reads,omitempty"`
	ReadBytes    uint64  `json:"read_bytes,omitempty"`
	ReadTime     float64 `json:"read_time,omitempty"` // seconds, summed over requests
	Writes       uint64  `json:"writes,omitempty"`
	WrittenBytes uint64  `json:"written_bytes,omitempty"`
	WriteTime    float64 `json:"write_time,omitempty"`
	Flushes      uint64  `json:"flushes,omitempty"`
	FlushTime    float64 `json:"flush_time,omitempty"`
	Busy         float64 `json:"busy,omitempty"` // seconds with requests in progress
	// Seconds times requests in progress. Divided by Took, it is the mean queue depth.
	Queued float64 `json:"queued,omitempty"`
}

// Stalls holds how long tasks waited for processors, disks or memory (PSI: the kernel's
// Documentation/accounting/psi.rst). All are zero on a kernel without PSI.
type Stalls struct {
	CPU    Stall `json:"cpu,omitzero"`
	IO     Stall `json:"io,omitzero"`
	Memory Stall `json:"memory,omitzero"`
}

// A Stall is in seconds.
type Stall struct {
	Some float64 `json:"some,omitempty"` // at least one task waited
	Full float64 `json:"full,omitempty"` // all non-idle tasks waited
}

// Swap is the traffic to and from swap, in pages.
type Swap struct {
	In  uint64 `json:"in,omitempty"`
	Out uint64 `json:"out,omitempty"`
}

// Load is the content of proc_loadavg(5). It is not a difference.
type Load struct {
	One     float64 `json:"one,omitempty"` // mean number of running and waiting tasks over a minute
	Running uint64  `json:"running,omitempty"`
	Tasks   uint64  `json:"tasks,omitempty"`
}
