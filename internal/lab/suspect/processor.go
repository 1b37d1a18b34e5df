package suspect

import (
	"fmt"
	"slices"
	"strings"

	"orrery/internal/lab/facts"
)

// unknownFact is the value of a fact that the host does not provide.
const unknownFact = "unknown on this host"

func virtual(f facts.Facts, _ Subject) (seen, cure string) {
	v := f.Virtual
	if !v.Machine {
		return "not a virtual machine", ""
	}
	about := strings.Join(strings.Fields(strings.Join([]string{v.Kind, v.Vendor, v.Product}, " ")), " ")
	if about != "" {
		about = " (" + about + ")"
	}
	return "this host is itself a virtual machine" + about +
			": load of its neighbours is invisible, and bare is not bare metal",
		"run the lab on the physical machine, or use absolute figures only for this virtual machine"
}

// governor checks that all processors have a steady clock. Only cpufreq's "performance" ignores the
// load.
func governor(f facts.Facts, _ Subject) (seen, cure string) {
	var slow, all []string
	for _, s := range f.Processors.Scaling {
		all = append(all, fmt.Sprintf("%s (%s)", s.Governor, s.Driver))
		if s.Governor != "performance" {
			slow = append(slow, fmt.Sprintf("%s (%s) on processors %s", s.Governor, s.Driver, formatList(s.Processors)))
		}
	}
	switch {
	case len(all) == 0:
		return unknownFact, ""
	case len(slow) == 0:
		slices.Sort(all)
		return strings.Join(slices.Compact(all), ", "), ""
	}
	return "the clock frequency depends on the load: " + strings.Join(slow, ", "),
		"echo performance | tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor"
}

// turbo reports turbo mode, in which the clock depends on the number of busy cores and their
// temperature.
func turbo(f facts.Facts, _ Subject) (seen, cure string) {
	switch t := f.Processors.Turbo; t {
	case "":
		return unknownFact, ""
	case facts.TurboOnIntel:
		return "the clock frequency exceeds its nominal value while few cores are busy",
			"echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo"
	case facts.TurboOn:
		return "the clock frequency exceeds its nominal value while few cores are busy",
			"echo 0 > /sys/devices/system/cpu/cpufreq/boost"
	default:
		return string(t), ""
	}
}

// smt reports that two tasks of a test may run on threads of one core, because they are pinned so,
// or because there are more tasks than cores. Pinning to all processors does not count as pinning.
func smt(f facts.Facts, s Subject) (seen, cure string) {
	p := f.Processors
	if len(p.Siblings) == 0 {
		return "each core runs one thread", ""
	}
	const disableSMT = "echo off > /sys/devices/system/cpu/smt/control"
	if n := len(pinned(s.Pins)); n > 0 && n < p.Threads {
		for _, core := range p.Siblings {
			if on := intersection(pinned(s.Pins), core); len(on) > 1 {
				return fmt.Sprintf("processors %s, to which tasks are pinned, are threads of one core", formatList(on)),
					"pin them to threads of different cores (lscpu --extended), or " + disableSMT
			}
		}
		return "pinned tasks share no core", ""
	}
	tasks := s.copies()
	if s.Far {
		tasks *= 2
	}
	switch {
	case s.Kind == "":
		return fmt.Sprintf("cores run %d threads: tests with more tasks than the %d cores share them", len(p.Siblings[0]),
			p.Cores), disableSMT
	case tasks > p.Cores:
		return fmt.Sprintf("%d tasks on %d cores of %d threads: some share a core", tasks, p.Cores, len(p.Siblings[0])),
			disableSMT
	}
	return "there is a core for each task", ""
}

// pinned returns the processors that any place is pinned to.
func pinned(pins [][]int) []int {
	all := slices.Concat(pins...)
	slices.Sort(all)
	return slices.Compact(all)
}

// intersection returns the elements that are in both lists.
func intersection(one, other []int) []int {
	return slices.DeleteFunc(slices.Clone(one), func(n int) bool { return !slices.Contains(other, n) })
}

// clocksource checks that the clock can be read without leaving the process or the virtual machine.
// Each architecture has such a counter.
func clocksource(f facts.Facts, _ Subject) (seen, cure string) {
	good := []string{"tsc", "arch_sys_counter", "timebase", "tod", "riscv_clocksource", "stp"}
	c := f.Clock
	switch {
	case c.Source == "":
		return unknownFact, ""
	case slices.Contains(good, c.Source):
		return c.Source, ""
	}
	seen = c.Source + ": the clock is not the processor's own counter"
	for _, name := range good {
		if slices.Contains(c.Available, name) {
			return seen, "echo " + name + " > /sys/devices/system/clocksource/clocksource0/current_clocksource"
		}
	}
	return seen, "boot with tsc=reliable if /proc/cpuinfo has constant_tsc and nonstop_tsc, " +
		"or give the virtual machine such a counter"
}

// formatList formats numbers as the kernel does.
func formatList(n []int) string {
	n = slices.Clone(n)
	slices.Sort(n)
	n = slices.Compact(n)
	var parts []string
	for i := 0; i < len(n); {
		j := i
		for j+1 < len(n) && n[j+1] == n[j]+1 {
			j++
		}
		if part := fmt.Sprint(n[i]); i == j {
			parts = append(parts, part)
		} else {
			parts = append(parts, fmt.Sprintf("%s-%d", part, n[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}
