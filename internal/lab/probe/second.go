// Package probe records the host's counters beside the lab's tests: once a second it reads those of
// processors, control groups, network, disks and stalls, and stores the differences. It is written
// so that it does not disturb what is measured: files stay open and are read by pread(2) into
// buffers that are used again, and nothing is kept of what did not change.
//
// The readers are small and its own. github.com/prometheus/procfs, which package facts uses, opens
// each file anew and makes objects of every line. BenchmarkProcfs and BenchmarkSecond set the two
// side by side.
package probe

import "time"

// A Second is what happened on the host between two readings: differences of counters, so zero is
// left out of JSON. Times are in seconds, sizes in bytes, of all that is counted here.
type Second struct {
	At   time.Time `json:"at"`   // of the later reading
	Took float64   `json:"took"` // s since the one before
	// CPU is of the whole host. Its Total is about Took times the number of processors.
	CPU  Times       `json:"cpu,omitzero"`
	Each []Processor `json:"each,omitempty"` // by processor, those that are online
	// Cgroups are by the names of Options.Cgroups; those that took nothing, or that are not there, are left out.
	Cgroups map[string]Usage `json:"cgroups,omitempty"`
	// Self is what the lab's own process took, and Children what its children took that ended in this
	// second and were waited for, over their whole lives (getrusage(2)): over a trial that starts and
	// ends programs it is what these took.
	Self     Usage `json:"self,omitzero"`
	Children Usage `json:"children,omitzero"`

	Switches   uint64  `json:"switches,omitempty"`   // of context
	Interrupts uint64  `json:"interrupts,omitempty"` // of all kinds
	Forks      uint64  `json:"forks,omitempty"`      // processes and threads that were made
	Net        []Link  `json:"net,omitempty"`        // those on which something moved, in the network namespace of the lab
	Softnet    Softnet `json:"softnet,omitzero"`
	UDP        UDP     `json:"udp,omitzero"`
	TCP        TCP     `json:"tcp,omitzero"`
	Disks      []Disk  `json:"disks,omitempty"` // those that did something
	Stalls     Stalls  `json:"stalls,omitzero"`
	Swap       Swap    `json:"swap,omitzero"`
	Throttled  uint64  `json:"throttled,omitempty"` // times that processors were slowed for their heat
	Load       Load    `json:"load,omitzero"`
}

// Times are seconds of processor time by what they went to (proc_stat(5)); the kernel counts in
// hundredths. What guests take is within User and Nice.
type Times struct {
	User    float64 `json:"user,omitempty"`
	Nice    float64 `json:"nice,omitempty"`
	System  float64 `json:"system,omitempty"`
	Idle    float64 `json:"idle,omitempty"`
	Wait    float64 `json:"wait,omitempty"` // idle, with a disk under way
	IRQ     float64 `json:"irq,omitempty"`
	SoftIRQ float64 `json:"softirq,omitempty"`
	Steal   float64 `json:"steal,omitempty"` // the hypervisor ran something else
	Guest   float64 `json:"guest,omitempty"` // of User and Nice: in virtual machines of this host
}

// Busy is the time that the host's processors worked for this host.
func (t Times) Busy() float64 { return t.User + t.Nice + t.System + t.IRQ + t.SoftIRQ }

// Total is all the time there was, stolen time too.
func (t Times) Total() float64 { return t.Busy() + t.Idle + t.Wait + t.Steal }

// Share is the busy part of the total, from 0 to 1; 0 if no time was counted.
func (t Times) Share() float64 {
	if total := t.Total(); total > 0 {
		return t.Busy() / total
	}
	return 0
}

// Add returns the sum of two.
func (t Times) Add(o Times) Times {
	return Times{
		t.User + o.User, t.Nice + o.Nice, t.System + o.System, t.Idle + o.Idle, t.Wait + o.Wait,
		t.IRQ + o.IRQ, t.SoftIRQ + o.SoftIRQ, t.Steal + o.Steal, t.Guest + o.Guest,
	}
}

// A Processor is one of the host's, by its number.
type Processor struct {
	ID int `json:"id"`
	Times
}

// Usage is processor time of processes, in seconds.
type Usage struct {
	User   float64 `json:"user,omitempty"`
	System float64 `json:"system,omitempty"`
}

// Total is both.
func (u Usage) Total() float64 { return u.User + u.System }

// Add returns the sum of two.
func (u Usage) Add(o Usage) Usage { return Usage{u.User + o.User, u.System + o.System} }

// A Link is an interface of the host (/proc/net/dev). What a node sends, its end on the host receives.
type Link struct {
	Name     string  `json:"name"`
	Received Traffic `json:"rx,omitzero"`
	Sent     Traffic `json:"tx,omitzero"`
}

// Traffic is what went one way. Dropped holds what the ring of a NIC had no room for, too (rx_missed_errors).
type Traffic struct {
	Bytes   uint64 `json:"bytes,omitempty"`
	Packets uint64 `json:"packets,omitempty"`
	Errors  uint64 `json:"errors,omitempty"`
	Dropped uint64 `json:"dropped,omitempty"`
	FIFO    uint64 `json:"fifo,omitempty"`
}

// Softnet is what the kernel's receive queues did, over all processors and all network namespaces
// (/proc/net/softnet_stat).
type Softnet struct {
	Processed uint64 `json:"processed,omitempty"`
	Dropped   uint64 `json:"dropped,omitempty"`  // net.core.netdev_max_backlog was full: veth goes this way
	Squeezed  uint64 `json:"squeezed,omitempty"` // net.core.netdev_budget was used up with packets left
	Steered   uint64 `json:"steered,omitempty"`  // woken by another processor (RPS)
	Limited   uint64 `json:"limited,omitempty"`  // dropped by the flow limit
}

// UDP is of the lab's network namespace only: the sockets of nodes count in their own (/proc/net/snmp).
type UDP struct {
	Received    uint64 `json:"received,omitempty"`
	Sent        uint64 `json:"sent,omitempty"`
	NoPort      uint64 `json:"no_port,omitempty"`
	Errors      uint64 `json:"errors,omitempty"`       // all that follow are among them, but for FullSend
	FullReceive uint64 `json:"full_receive,omitempty"` // RcvbufErrors: the socket's buffer was full
	FullSend    uint64 `json:"full_send,omitempty"`    // SndbufErrors
	Checksum    uint64 `json:"checksum,omitempty"`
	Memory      uint64 `json:"memory,omitempty"` // net.ipv4.udp_mem was used up
}

// TCP is of the lab's network namespace only.
type TCP struct {
	Received uint64 `json:"received,omitempty"` // segments
	Sent     uint64 `json:"sent,omitempty"`
	Resent   uint64 `json:"resent,omitempty"`
	Errors   uint64 `json:"errors,omitempty"`
}

// A Disk is a block device (diskstats of the kernel's Documentation/admin-guide/iostats.rst).
type Disk struct {
	Name         string  `json:"name"`
	Reads        uint64  `json:"reads,omitempty"`
	ReadBytes    uint64  `json:"read_bytes,omitempty"`
	ReadTime     float64 `json:"read_time,omitempty"` // s that requests took, summed over requests
	Writes       uint64  `json:"writes,omitempty"`
	WrittenBytes uint64  `json:"written_bytes,omitempty"`
	WriteTime    float64 `json:"write_time,omitempty"`
	Flushes      uint64  `json:"flushes,omitempty"`
	FlushTime    float64 `json:"flush_time,omitempty"`
	Busy         float64 `json:"busy,omitempty"` // s in which anything was under way
	// s times requests under way: over Took it is the mean depth of the queue
	Queued float64 `json:"queued,omitempty"`
}

// Stalls tell how long something waited for want of processors, disks or memory (PSI: the kernel's
// Documentation/accounting/psi.rst). They are all zero on a kernel without it.
type Stalls struct {
	CPU    Stall `json:"cpu,omitzero"`
	IO     Stall `json:"io,omitzero"`
	Memory Stall `json:"memory,omitzero"`
}

// A Stall is in seconds.
type Stall struct {
	Some float64 `json:"some,omitempty"` // at least one task waited
	Full float64 `json:"full,omitempty"` // nothing else ran meanwhile
}

// Swap is what went to and from swap, in pages.
type Swap struct {
	In  uint64 `json:"in,omitempty"`
	Out uint64 `json:"out,omitempty"`
}

// Load is what proc_loadavg(5) says; it is no difference.
type Load struct {
	One     float64 `json:"one,omitempty"` // mean of runnable and waiting tasks over a minute
	Running uint64  `json:"running,omitempty"`
	Tasks   uint64  `json:"tasks,omitempty"`
}
