package suspect

import (
	"fmt"
	"slices"

	"orrery/internal/lab/probe"
	"orrery/internal/lab/test"
)

// The shares above which a label is given.
const (
	maxIdleShare  = 0.05 // of the host, before the first round
	maxStealShare = 0.01 // of all processor time
	otherShare    = 0.05 // of the host
	otherCores    = 0.5  // in processors: on a large host 5 % are several
	stallShare    = 0.05 // of the time
	minPathShare  = 0.9  // of the bytes that the test moved
	minPathBytes  = 1 << 20
	minDiskShare  = 0.9 // of the bytes that the test read or wrote
	minDiskBytes  = 16 << 20
)

// A Context holds what matters about a trial to interpret the probes.
type Context struct {
	Kind     string
	Baseline probe.CPU // of the idle host, from probe.Baseline
	Links    []string  // interfaces of the host for the traffic, or none if it does not matter
	Bytes    uint64    // bytes that the test says it moved in all directions, or 0 if unknown
	Moved    test.Moved
}

// Busy reports whether the host was not idle when it was measured before the first round.
func Busy(base probe.CPU) bool { return base.Share() > maxIdleShare }

const cureLoad = "stop other processes: ps -eo pcpu,pid,args --sort=-pcpu | head"

// During returns the labels of one trial. The seconds are those from probe.Cut at its beginning to
// probe.Cut after its end, when its programs had been waited for.
func During(seconds []probe.Second, c Context) []test.Label {
	s := sumSeconds(seconds)
	if s.took <= 0 {
		return nil
	}
	var labels []test.Label
	for _, look := range []func(trial, Context) (label test.Label, bad bool){
		stolen, others, swapped, hot, stalled, wrongPath, fromMemory} {
		if l, bad := look(s, c); bad {
			labels = append(labels, l)
		}
	}
	return labels
}

// A trial is the sum of its seconds.
type trial struct {
	took                    float64
	cpu                     probe.Times
	self, children, cgroups probe.Usage
	swapIn, swapOut, hot    uint64
	ioStall, memoryStall    float64
	links                   map[string]uint64 // bytes in both directions
	// Of all block devices. Partitions, and devices on top of others, count too.
	disks test.Moved
}

func sumSeconds(seconds []probe.Second) trial {
	t := trial{links: map[string]uint64{}}
	for _, s := range seconds {
		t.took += s.Took
		t.cpu = t.cpu.Add(s.CPU)
		t.self, t.children = t.self.Add(s.Self), t.children.Add(s.Children)
		for _, u := range s.Cgroups {
			t.cgroups = t.cgroups.Add(u)
		}
		t.swapIn, t.swapOut, t.hot = t.swapIn+s.Swap.In, t.swapOut+s.Swap.Out, t.hot+s.Throttled
		t.ioStall, t.memoryStall = t.ioStall+s.Stalls.IO.Some, t.memoryStall+s.Stalls.Memory.Some
		for _, l := range s.Net {
			t.links[l.Name] += l.Received.Bytes + l.Sent.Bytes
		}
		for _, d := range s.Disks {
			t.disks = t.disks.Add(test.Moved{Read: int64(d.ReadBytes), Written: int64(d.WrittenBytes)})
		}
	}
	return t
}

func stolen(t trial, _ Context) (test.Label, bool) {
	total := t.cpu.Total()
	share := t.cpu.Steal / max(total, 1e-9)
	return test.Label{
		Name: Steal, Why: fmt.Sprintf("the hypervisor took %.1f %% of the processor time for other machines", 100*share),
		Cure: "give this virtual machine its own processors, or run when its neighbours are idle",
	}, share > maxStealShare
}

func swapped(t trial, _ Context) (test.Label, bool) {
	return test.Label{
		Name: Swap, Why: fmt.Sprintf("%d pages were swapped out and %d swapped in", t.swapOut, t.swapIn),
		Cure: "free memory, or swapoff -a",
	}, t.swapIn+t.swapOut > 0
}

func hot(t trial, _ Context) (test.Label, bool) {
	return test.Label{
		Name: Heat, Why: fmt.Sprintf("processors were throttled %d times because of their temperature", t.hot),
		Cure: "improve the cooling (see sensors), or disable turbo mode",
	}, t.hot > 0
}

// stalled reports waiting that the test does not cause itself. A disk test waits for disks, for
// example. Waiting for processors is caused by load from other processes.
func stalled(t trial, c Context) (test.Label, bool) {
	l := test.Label{Name: Stall}
	share := func(x float64) float64 { return 100 * x / t.took }
	switch {
	case t.memoryStall > stallShare*t.took:
		l.Why = fmt.Sprintf("tasks waited for memory for %.0f %% of the time", share(t.memoryStall))
		l.Cure = "free memory, or give the nodes more"
	case t.ioStall > stallShare*t.took && !slices.Contains([]string{disk, "command"}, c.Kind):
		l.Why = fmt.Sprintf("tasks waited for a disk for %.0f %% of the time", share(t.ioStall))
		l.Cure = "stop the processes that use the disk: pidstat -d 1"
	default:
		return l, false
	}
	return l, true
}
