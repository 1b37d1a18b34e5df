// Package suspect decides which figures are doubtful, and what to do about it.
//
// Its functions depend only on facts and seconds, and have no side effects.
//
//	Host    problems of a host for any measurement: `orrery lab doctor`
//	Before  what is known about a test in a place before it runs: labels on each of its rows
//	During  what the probes saw while a trial ran: labels on that trial
//
// A test adds labels for what only the test can know (a slow sender, how it opened its file). Both
// may report the same cause: labels with the same name and the same Where are one.
package suspect

import (
	"slices"

	"orrery/internal/host/doctor"
	"orrery/internal/lab/facts"
	"orrery/internal/lab/test"
)

// The names of the labels of this package. Those in the issue and in the report are fixed.
const (
	Governor    = "governor"
	Turbo       = "turbo"
	SMT         = "smt"
	Virtual     = "virtual"
	Steal       = "steal"
	Load        = "load"
	Clocksource = "clocksource"
	MTU         = "mtu"
	RMem        = "rmem"
	Offload     = "offload"
	BridgeNF    = "bridge-nf"
	Netfilter   = "netfilter"
	Path        = "path"
	Direct      = "o_direct"
	PageCache   = "page-cache"
	Swap        = "swap"
	Stall       = "stall"
	Heat        = "heat"
)

// The kinds of tests that matter here.
const (
	capture = "capture"
	network = "net"
	micro   = "micro"
	cpu     = "cpu"
	disk    = "disk"
	mpi     = "mpi"
)

// A Subject holds what determines which facts matter to a test in a place.
type Subject struct {
	Kind   string // of the test, such as "capture"
	Copies int    // number of concurrent copies; 0 means 1
	Far    bool   // there is a far end on the same host
	// Links are the interfaces of the host for the traffic. They are looked up in the facts, which
	// must be collected while the interfaces exist.
	Links  []string
	Aside  bool    // its packets avoid the rules that those of the bare host pass
	Bridge bool    // the traffic crosses a bridge of the host; Links in a bridge imply it
	Pins   [][]int // processors to which each place is pinned, or none
	Rate   float64 // rate in bit/s at which UDP is received, or 0 if unknown, for which 1 Gb/s is assumed
	Cached string  // why the host's memory is between the place and its disk, or ""
	File   int64   // bytes of the file for measuring disks, or 0 if unknown
}

func (s Subject) copies() int { return max(s.Copies, 1) }

// A check is one possible problem.
type check struct {
	name  string
	kinds []string // kinds of tests to which it matters, or none for all
	where string   // affected figures
	// see returns what was found, and the cure, which is "" if there is no problem.
	see func(facts.Facts, Subject) (seen, cure string)
	// host is the title of the fact for a host without a test, or "" if it needs a test.
	host string
}

func checks() []check {
	return []check{
		{name: Virtual, see: virtual, host: "machine"},
		{name: Governor, see: governor, host: "governor"},
		{name: Turbo, kinds: []string{cpu, micro, mpi, network, capture}, see: turbo, host: "turbo"},
		{name: SMT, kinds: []string{cpu, micro, mpi, network, capture}, see: smt, host: "SMT"},
		{name: Clocksource, kinds: []string{micro, mpi, network, capture}, see: clocksource, host: "clock source"},
		{name: RMem, kinds: []string{capture}, see: rmem, host: "receive buffers"},
		{name: BridgeNF, kinds: []string{network, capture, mpi}, see: bridgeNF, host: "bridge-nf"},
		{name: Netfilter, kinds: []string{network, capture, mpi}, see: netfilter},
		{name: Netfilter, kinds: []string{micro}, where: "host's rules", see: netfilter},
		{name: MTU, kinds: []string{network, capture, mpi}, see: mtu},
		{name: Offload, kinds: []string{capture}, see: offload},
		{name: Offload, kinds: []string{network}, where: "tcp", see: offload},
		{name: Direct, kinds: []string{disk}, see: direct, host: "O_DIRECT"},
		{name: PageCache, kinds: []string{disk}, see: pageCache, host: "disk cache"},
		{name: Swap, see: swap, host: "swap"},
	}
}

func (v check) concerns(kind string) bool { return len(v.kinds) == 0 || slices.Contains(v.kinds, kind) }

// Before returns the labels that a test in a place has regardless of its trials.
func Before(f facts.Facts, s Subject) []test.Label {
	var labels []test.Label
	for _, v := range checks() {
		if !v.concerns(s.Kind) {
			continue
		}
		if seen, cure := v.see(f, s); cure != "" {
			labels = append(labels, test.Label{Name: v.name, Why: seen, Cure: cure, Where: v.where})
		}
	}
	return labels
}

// Host returns how suitable a host is for measurements, in the form of `orrery doctor`. No fact is
// required, but a problem will become a label.
func Host(f facts.Facts) doctor.Facts {
	var all doctor.Facts
	for _, v := range checks() {
		if v.host == "" {
			continue
		}
		seen, cure := v.see(f, Subject{})
		all = append(all, doctor.Fact{Name: v.host, OK: cure == "", Level: doctor.Recommended, Value: seen, Fix: cure})
	}
	return append(all, load(f))
}
