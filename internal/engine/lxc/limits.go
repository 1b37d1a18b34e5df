package lxc

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
)

// limit is one file of a control group.
type limit struct {
	controller string
	family     string // LXC's name for the version of the hierarchy: cgroup, cgroup2
	file       string
	value      string
}

const cgroups = "/sys/fs/cgroup"

// period is the length of a scheduling period in microseconds (cpu.max in cgroups(7), cfs_period_us).
const period = 100_000

// limitFiles says which files of the node's control group hold its limits, in the version of each controller that this host has:
// a host may have some in version 1 and others in version 2.
func limitFiles(l site.Limits) []limit {
	l = settable(l)
	var all []limit
	add := func(controller, v1, v1value, v2, v2value string) {
		switch {
		case isV1(controller):
			all = append(all, limit{controller, "cgroup", v1, v1value})
		default:
			all = append(all, limit{controller, "cgroup2", v2, v2value})
		}
	}
	if l.Cpus > 0 {
		quota := strconv.Itoa(int(l.Cpus * period))
		add("cpu", "cpu.cfs_quota_us", quota, "cpu.max", quota+" "+strconv.Itoa(period))
	}
	if l.Pin != "" {
		add("cpuset", "cpuset.cpus", l.Pin, "cpuset.cpus", l.Pin)
	}
	if l.Memory > 0 {
		bytes := strconv.FormatInt(l.Memory, 10)
		add("memory", "memory.limit_in_bytes", bytes, "memory.max", bytes)
	}
	if l.Swap != nil {
		both := strconv.FormatInt(l.Memory+*l.Swap, 10) // version 1 counts memory and swap together
		add("memory", "memory.memsw.limit_in_bytes", both, "memory.swap.max", strconv.FormatInt(*l.Swap, 10))
	}
	if l.Pids > 0 {
		pids := strconv.Itoa(l.Pids)
		add("pids", "pids.max", pids, "pids.max", pids)
	}
	return all
}

// unlimited gives the files with the values that mean no limit, for those that l does not set.
func unlimited(l site.Limits) []limit {
	full := site.Limits{Cpus: 1, Pin: "0", Memory: 1, Swap: new(int64), Pids: 1}
	set := map[string]bool{}
	for _, f := range limitFiles(l) {
		set[f.file] = true
	}
	none := map[string]string{
		"cpu.cfs_quota_us": "-1", "cpu.max": "max", "memory.limit_in_bytes": "-1", "memory.max": "max",
		"memory.memsw.limit_in_bytes": "-1", "memory.swap.max": "max", "pids.max": "max",
	}
	var all []limit
	for _, f := range limitFiles(full) {
		if set[f.file] {
			continue
		}
		f.value = none[f.file]
		if f.file == "cpuset.cpus" {
			f.value = onlineCpus()
		}
		all = append(all, f)
	}
	return all
}

func isV1(controller string) bool {
	_, err := os.Stat(filepath.Join(cgroups, controller, "cgroup.procs"))
	return err == nil
}

// hasSwapLimit reports whether the kernel counts swap (swapaccount in version 1 is an option of its command line).
func hasSwapLimit() bool {
	if isV1("memory") {
		_, err := os.Stat(filepath.Join(cgroups, "memory/memory.memsw.limit_in_bytes"))
		return err == nil
	}
	return true
}

func onlineCpus() string {
	text, _ := os.ReadFile("/sys/devices/system/cpu/online")
	return strings.TrimSpace(string(text))
}

// hierarchy is where a controller's control groups are.
func hierarchy(controller string) string {
	if isV1(controller) {
		return filepath.Join(cgroups, controller)
	}
	return cgroups
}

// applyLimits sets the limits of a running node and reads them back.
func (c container) applyLimits(l site.Limits) error {
	path := func(f limit) string { return filepath.Join(hierarchy(f.controller), c.cgroup(), f.file) }
	var refused []limit
	for _, f := range append(limitFiles(l), unlimited(l)...) {
		if os.WriteFile(path(f), []byte(f.value), 0) != nil {
			refused = append(refused, f)
		}
	}
	// In version 1, memory may at no moment be more than memory and swap together: what is refused may be taken after the rest.
	for _, f := range refused {
		if err := os.WriteFile(path(f), []byte(f.value), 0); err != nil {
			return problem.New(problem.Failed, "node %s: limit %s = %s was not taken", c.ref.Name, f.file, f.value).
				At(path(f)).Because(errors.Unwrap(err)).Try("a limit below what the node uses now cannot be set while it runs")
		}
	}
	if has, want := c.limits(), settable(l); !equalLimits(has, want) {
		return problem.New(problem.Failed, "node %s: limits read back as %+v instead of %+v", c.ref.Name, has, want).
			At(filepath.Join(cgroups, c.cgroup()))
	}
	return nil
}

// settable drops what this host cannot limit: version 1 counts memory and swap together, and so bounds swap only where memory is bounded.
func settable(l site.Limits) site.Limits {
	if !hasSwapLimit() || l.Memory == 0 && isV1("memory") {
		l.Swap = nil
	}
	return l
}

func equalLimits(a, b site.Limits) bool {
	swap := func(l site.Limits) int64 {
		if l.Swap == nil {
			return -1
		}
		return *l.Swap
	}
	// The kernel rounds memory down to pages.
	return fmt.Sprintf("%.4f", a.Cpus) == fmt.Sprintf("%.4f", b.Cpus) && samePin(a.Pin, b.Pin) &&
		a.Memory>>16 == b.Memory>>16 && a.Pids == b.Pids && swap(a)>>16 == swap(b)>>16
}

// samePin compares pins as the kernel would: one to all processors is none.
func samePin(a, b string) bool {
	all := onlineCpus()
	return site.SamePin(cmp.Or(a, all), cmp.Or(b, all))
}

// limits reads the limits that are in force.
func (c container) limits() site.Limits {
	var l site.Limits
	read := func(controller, v1, v2 string) string {
		file := v2
		if isV1(controller) {
			file = v1
		}
		text, _ := os.ReadFile(filepath.Join(hierarchy(controller), c.cgroup(), file))
		return strings.TrimSpace(string(text))
	}
	if words := strings.Fields(read("cpu", "cpu.cfs_quota_us", "cpu.max")); len(words) > 0 {
		if quota, err := strconv.Atoi(words[0]); err == nil && quota > 0 {
			l.Cpus = float64(quota) / period
		}
	}
	if pin := read("cpuset", "cpuset.cpus", "cpuset.cpus"); !samePin(pin, "") {
		l.Pin = pin
	}
	l.Memory = amount(read("memory", "memory.limit_in_bytes", "memory.max"))
	l.Pids = int(amount(read("pids", "pids.max", "pids.max")))
	if hasSwapLimit() {
		swap := read("memory", "memory.memsw.limit_in_bytes", "memory.swap.max")
		if n := amount(swap); n > 0 || swap == "0" {
			if isV1("memory") {
				n -= l.Memory
			}
			l.Swap = &n
		}
	}
	return l
}

// amount reads a number; "max", and version 1's way to say it (the largest multiple of a page), give 0: no limit.
func amount(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > 1<<60 {
		return 0
	}
	return n
}
