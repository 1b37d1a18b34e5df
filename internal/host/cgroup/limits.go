package cgroup

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/diskio"
	"orrery/internal/tree/rawfile"
)

// A File is one file of a control group.
type File struct {
	Controller string
	V1         bool // its hierarchy is one of version 1
	Name       string
	Value      string
}

// period is the length of a scheduling period in microseconds (cpu.max in cgroups(7), cfs_period_us).
const period = 100_000

// maxSubgroups limits the number of groups below a node's group. Each costs the host's kernel about 80
// KB that no memory limit counts. Version 1 has no such limit.
const maxSubgroups = 1000

// LimitFiles returns the files of a node's group that hold limits, with their values.
func LimitFiles(l site.Limits) []File { return hostMount.limitFiles(l) }

func (p mountPoint) limitFiles(l site.Limits) []File {
	l = p.settable(l)
	var all []File
	add := func(controller, v1, v1value, v2, v2value string) {
		if p.isV1(controller) {
			all = append(all, File{controller, true, v1, v1value})
		} else {
			all = append(all, File{controller, false, v2, v2value})
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
	if l.Disk != (diskio.Limits{}) {
		for _, f := range p.diskFiles(l.Disk, disks()) {
			if !strings.HasSuffix(f.Value, " 0") { // no limit, which version 1 expresses in this way
				all = append(all, f)
			}
		}
	}
	if isV2(string(p)) {
		all = append(all, File{Name: "cgroup.max.descendants", Value: strconv.Itoa(maxSubgroups)})
	}
	return all
}

// noLimitFiles returns the files of the limits that l does not set, with the values that mean no
// limit.
func (p mountPoint) noLimitFiles(l site.Limits) []File {
	full := site.Limits{Cpus: 1, Pin: "0", Memory: 1, Swap: new(int64), Pids: 1}
	set := map[string]bool{}
	for _, f := range p.limitFiles(l) {
		set[f.Name] = true
	}
	none := map[string]string{
		"cpu.cfs_quota_us": "-1", "cpu.max": "max", "memory.limit_in_bytes": "-1", "memory.max": "max",
		"memory.memsw.limit_in_bytes": "-1", "memory.swap.max": "max", "pids.max": "max",
	}
	var all []File
	for _, f := range p.limitFiles(full) {
		if set[f.Name] {
			continue
		}
		f.Value = none[f.Name]
		if f.Name == "cpuset.cpus" {
			f.Value = onlineCpus()
		}
		all = append(all, f)
	}
	return all
}

// hasSwapLimit reports whether the kernel counts swap. In version 1, that is an option of the
// kernel's command line (swapaccount).
func (p mountPoint) hasSwapLimit() bool {
	if p.isV1("memory") {
		_, err := os.Stat(filepath.Join(p.hierarchy("memory"), "memory.memsw.limit_in_bytes"))
		return err == nil
	}
	return true
}

func onlineCpus() string {
	text, _ := rawfile.ReadFile("/sys/devices/system/cpu/online")
	return strings.TrimSpace(string(text))
}

// SetLimits sets the limits of a node's group, and reads them back.
func (g Group) SetLimits(node string, l site.Limits) error {
	path := func(f File) string { return g.file(f.Controller, f.Name) }
	var refused []File
	others := l
	others.Disk = diskio.Limits{}
	all := slices.Concat(g.at.limitFiles(others), g.at.noLimitFiles(others), diskGroup{g}.changedFiles(l.Disk))
	for _, f := range all {
		if os.WriteFile(path(f), []byte(f.Value), 0) != nil {
			refused = append(refused, f)
		}
	}
	// In version 1, memory must never be larger than memory and swap together. So a value that was
	// refused may be accepted after the others have been set.
	for _, f := range refused {
		if err := os.WriteFile(path(f), []byte(f.Value), 0); err != nil {
			return problem.New(problem.Failed, "node %s: limit %s = %s was refused", node, f.Name, f.Value).
				At(path(f)).Because(errors.Unwrap(err)).Try("a limit below the node's current usage cannot be set while it runs")
		}
	}
	if err := g.CloseDisks(node, l.Disk); err != nil {
		return err
	}
	if held, ok := g.InForce(l); !ok {
		return problem.New(problem.Failed, "node %s: limits read back as %+v instead of %+v", node, held, g.at.settable(l)).
			At(filepath.Join(string(g.at), g.name))
	}
	return nil
}

// InForce reports whether the limits are in force, as far as this host can limit, and returns the
// limits in force. It returns Cpus and Pin as they are in l if they mean the same. The kernel
// rounds Cpus, and a Pin can be written in several ways.
func (g Group) InForce(l site.Limits) (held site.Limits, ok bool) {
	held = g.Limits()
	held.Disk = diskGroup{g}.inForce(l.Disk)
	ok = equal(held, g.at.settable(l))
	if sameCpus(held.Cpus, l.Cpus) {
		held.Cpus = l.Cpus
	}
	if samePin(held.Pin, l.Pin) {
		held.Pin = l.Pin
	}
	return held, ok
}

// settable drops the limits that this host cannot set. Version 1 counts memory and swap together,
// so it can limit swap only if memory is limited.
func (p mountPoint) settable(l site.Limits) site.Limits {
	if !p.hasSwapLimit() || l.Memory == 0 && p.isV1("memory") {
		l.Swap = nil
	}
	return l
}

func equal(a, b site.Limits) bool {
	swap := func(l site.Limits) int64 {
		if l.Swap == nil {
			return -1
		}
		return *l.Swap
	}
	// Compare without the low bits, because the kernel rounds memory down to pages.
	return sameCpus(a.Cpus, b.Cpus) && samePin(a.Pin, b.Pin) &&
		a.Memory>>16 == b.Memory>>16 && a.Pids == b.Pids && a.Disk == b.Disk && swap(a)>>16 == swap(b)>>16
}

// sameCpus compares shares of the processors. The kernel has them in whole microseconds of a
// period.
func sameCpus(a, b float64) bool { return fmt.Sprintf("%.4f", a) == fmt.Sprintf("%.4f", b) }

// samePin compares pins as the kernel does: a pin to all processors is the same as no pin.
func samePin(a, b string) bool {
	if a == b {
		return true
	}
	all := onlineCpus()
	return site.SameProcessors(cmp.Or(a, all), cmp.Or(b, all))
}

// Limits returns the limits that are in force, without those of disks.
func (g Group) Limits() site.Limits {
	var l site.Limits
	read := func(controller, v1, v2 string) string {
		file := v2
		if g.at.isV1(controller) {
			file = v1
		}
		text, _ := rawfile.ReadFile(g.file(controller, file))
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
	l.Memory = parseAmount(read("memory", "memory.limit_in_bytes", "memory.max"))
	l.Pids = int(parseAmount(read("pids", "pids.max", "pids.max")))
	if g.at.hasSwapLimit() {
		swap := read("memory", "memory.memsw.limit_in_bytes", "memory.swap.max")
		if n := parseAmount(swap); n > 0 || swap == "0" {
			if g.at.isV1("memory") {
				n -= l.Memory
			}
			l.Swap = &n
		}
	}
	return l
}

// parseAmount returns a number, or 0 for no limit: "max", or the largest multiple of a page in version
// 1.
func parseAmount(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > 1<<60 {
		return 0
	}
	return n
}
