package facts

import "fmt"

// Differences returns the differences between a machine and its former facts that forbid mixing figures
// of both: its name, its kernel and its processors. Facts that one of the two does not have are
// skipped.
func (f Facts) Differences(former Facts) (all []string) {
	count := func(n int) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprint(n)
	}
	for _, one := range []struct{ what, then, now string }{
		{"host", former.Host, f.Host},
		{"kernel", former.Kernel.Release, f.Kernel.Release},
		{"version of the kernel", former.Kernel.Version, f.Kernel.Version},
		{"command line of the kernel", former.Kernel.CommandLine, f.Kernel.CommandLine},
		{"processors", former.Processors.Model, f.Processors.Model},
		{"microcode", former.Processors.Microcode, f.Processors.Microcode},
		{"number of processors", count(former.Processors.Threads), count(f.Processors.Threads)},
	} {
		if one.then != one.now && one.then != "" && one.now != "" {
			all = append(all, fmt.Sprintf("%s: %s then, %s now", one.what, one.then, one.now))
		}
	}
	return all
}
