// Package suspect decides which figures are doubtful, and what to do about it. It is a function of
// facts and seconds, and does nothing itself.
//
//	Host    what of a host is unfit for measuring at all: `orrery lab doctor`
//	Before  what is known of a test in a place before it runs: labels on each of its rows
//	During  what the probes saw while a trial ran: labels on that trial
//
// Labels that only a test can know (a sender that was too slow, how it opened its file) are the
// test's own. Both may tell of the same cause: labels of one name and one Where are one.
package suspect

import (
	"slices"

	"orrery/internal/host/doctor"
	"orrery/internal/lab/facts"
	"orrery/internal/lab/test"
)

// The names of labels that are given here. Those of issue and report are fixed.
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

// The kinds of tests that are told apart.
const (
	capture = "capture"
	network = "net"
	micro   = "micro"
	cpu     = "cpu"
	disk    = "disk"
	mpi     = "mpi"
)

// A Subject is a test in a place, as far as that makes facts matter.
type Subject struct {
	Kind   string // of the test, such as "capture"
	Copies int    // that run at once; 0: one
	Far    bool   // there is a second end on the same host
	// Links are the interfaces of the host through which the traffic is to go. They are looked up
	// among the facts, which must be collected while they are there.
	Links  []string
	Aside  bool    // its packets pass nothing of what those of the bare host pass there
	Bridge bool    // the traffic crosses a bridge of the host; links that belong to one say so themselves
	Pins   [][]int // processors that each of the places is pinned to; none: nothing is pinned
	Rate   float64 // bit/s that UDP is to be received at; 0: not known, 1 Gb/s is assumed
	Cached string  // why the host's memory is between the place and its disk; "": it is not
	File   int64   // bytes of the file that disks are measured with; 0: not known
}

func (s Subject) copies() int { return max(s.Copies, 1) }

// A view is one thing that may be wrong.
type view struct {
	name  string
	kinds []string // of tests that it matters to; none: all
	where string   // the figures that it concerns
	// see returns what was seen, and the cure if that is not as it should be. The cure is "" if all is well.
	see func(facts.Facts, Subject) (seen, cure string)
	// host: it can be said of a host without a test, too, under this title.
	host string
}

func views() []view {
	return []view{
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

func (v view) concerns(kind string) bool { return len(v.kinds) == 0 || slices.Contains(v.kinds, kind) }

// Before returns the labels that a test in a place has whatever comes of it.
func Before(f facts.Facts, s Subject) []test.Label {
	var labels []test.Label
	for _, v := range views() {
		if !v.concerns(s.Kind) {
			continue
		}
		if seen, cure := v.see(f, s); cure != "" {
			labels = append(labels, test.Label{Name: v.name, Why: seen, Cure: cure, Where: v.where})
		}
	}
	return labels
}

// Host says how fit a host is to be measured on, in the words and levels of `orrery doctor`:
// nothing here is needed, but what is not well will be a label.
func Host(f facts.Facts) doctor.Facts {
	var all doctor.Facts
	for _, v := range views() {
		if v.host == "" {
			continue
		}
		seen, cure := v.see(f, Subject{})
		all = append(all, doctor.Fact{Name: v.host, OK: cure == "", Level: doctor.Wanted, Value: seen, Fix: cure})
	}
	return append(all, load(f))
}
