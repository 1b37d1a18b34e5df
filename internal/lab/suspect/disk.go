package suspect

import (
	"fmt"
	"strings"

	"orrery/internal/host/doctor"
	"orrery/internal/lab/facts"
	"orrery/internal/lab/test"
)

func direct(f facts.Facts, _ Subject) (seen, cure string) {
	d := f.Directory
	switch {
	case d == nil:
		return "no directory was examined", ""
	case d.Direct:
		return fmt.Sprintf("works in %s (%s)", d.Path, d.Type), ""
	}
	return fmt.Sprintf("%s (%s) does not support O_DIRECT, so the page cache is measured with the disk: %s", d.Path, d.Type, d.Why),
		"name a directory on ext4 or xfs in the experiment: dir = \"…\""
}

// pageCache reports files that fit into memory. With O_DIRECT they do not matter, unless the file
// system itself is in memory.
func pageCache(f facts.Facts, s Subject) (seen, cure string) {
	d := f.Directory
	switch {
	case d == nil:
		return "no directory was examined", ""
	case s.Cached != "":
		return "the host caches in memory what the guest reads and writes: " + s.Cached, cureCached
	case d.Type == "tmpfs" || d.Type == "ramfs":
		return fmt.Sprintf("%s is in memory (%s), not on a disk", d.Path, d.Type),
			"name a directory on a disk in the experiment: dir = \"…\""
	case d.Direct:
		return "bypassed by O_DIRECT", ""
	case s.File > 0 && s.File < 2*f.Memory.Total:
		return fmt.Sprintf("at least half of the file of %s fits into %s of memory", formatGiB(s.File),
				formatGiB(f.Memory.Total)),
			fmt.Sprintf("measure with a file of %s, or on a file system that supports O_DIRECT", formatGiB(2*f.Memory.Total))
	}
	return fmt.Sprintf("%s of memory may cache what is read", formatGiB(f.Memory.Total)), ""
}

const cureCached = `give the setting a disk that the host does not cache: disk = "file", cache = "none"`

// fromMemory compares how much a test says that it read and wrote with what the host's disks did at
// the same time. If other processes use a disk too, that may go unnoticed. But a test that moved
// more than all disks together was measured in memory.
func fromMemory(t trial, c Context) (test.Label, bool) {
	var parts []string
	for _, way := range []struct {
		verb        string
		test, disks int64
	}{{"read", c.Moved.Read, t.disks.Read}, {"wrote", c.Moved.Written, t.disks.Written}} {
		if way.test >= minDiskBytes && float64(way.disks) < minDiskShare*float64(way.test) {
			parts = append(parts, fmt.Sprintf("the test %s %.0f MB, and all disks of the host %.0f MB", way.verb,
				float64(way.test)/1e6, float64(way.disks)/1e6))
		}
	}
	return test.Label{
		Name: PageCache, Why: strings.Join(parts, "; "),
		Cure: `bypass the memory of the host: use O_DIRECT and, in a virtual machine, a disk with cache = "none"`,
	}, len(parts) > 0
}

// swap reports used swap, which means that memory was short before. Up to a hundredth of the memory
// does not count, because nothing may need those pages. Swapping during a trial is seen by the
// probes.
func swap(f facts.Facts, _ Subject) (seen, cure string) {
	switch m := f.Memory; {
	case m.SwapTotal == 0:
		return "none", ""
	case m.SwapUsed*100 <= m.Total:
		return formatGiB(m.SwapUsed) + " in use", ""
	default:
		return fmt.Sprintf("%s of swap in use: memory was short", formatGiB(m.SwapUsed)),
			"free memory, then swapoff -a && swapon -a"
	}
}

// load reports whether the host was idle. A tenth of a processor, on average over the last minute,
// is usual for daemons.
func load(f facts.Facts) doctor.Fact {
	fact := doctor.Fact{Name: "load", OK: true, Level: doctor.Recommended, Value: unknownFact}
	if len(f.Load) == 0 {
		return fact
	}
	fact.Value = fmt.Sprintf("%.2f over the last minute, on %d processors", f.Load[0], f.Processors.Threads)
	if f.Load[0] > maxIdleShare*float64(max(f.Processors.Threads, 1))+0.1 {
		fact.OK, fact.Fix = false, "stop other processes (ps -eo pcpu,pid,args --sort=-pcpu | head), and wait a minute"
	}
	return fact
}

func formatGiB(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }
