package facts

import (
	"path/filepath"
	"slices"
	"strings"
)

// sysctls lists the sysctls that affect a figure. A * matches the rest of a name. Those that the
// kernel does not have are omitted.
var sysctls = [...]string{
	"net/core/rmem_max", "net/core/rmem_default", "net/core/wmem_max", "net/core/wmem_default", "net/core/optmem_max",
	"net/core/netdev_max_backlog", "net/core/netdev_budget", "net/core/netdev_budget_usecs", "net/core/busy_poll",
	"net/core/busy_read",
	"net/core/default_qdisc", "net/core/somaxconn", "net/core/rps_sock_flow_entries", "net/core/bpf_jit_enable",
	"net/core/dev_weight",
	"net/ipv4/udp_mem", "net/ipv4/udp_rmem_min", "net/ipv4/udp_early_demux", "net/ipv4/tcp_mem", "net/ipv4/tcp_rmem",
	"net/ipv4/tcp_wmem",
	"net/ipv4/tcp_congestion_control", "net/ipv4/tcp_available_congestion_control", "net/ipv4/tcp_mtu_probing",
	"net/ipv4/ip_forward",
	"net/ipv4/ip_early_demux", "net/ipv4/conf/all/rp_filter", "net/bridge/bridge-nf-call-*",
	"net/netfilter/nf_conntrack_max",
	"vm/dirty_*", "vm/swappiness", "vm/overcommit_memory", "vm/nr_hugepages", "vm/zone_reclaim_mode", "vm/stat_interval",
	"vm/vfs_cache_pressure", "kernel/sched_*", "kernel/numa_balancing", "kernel/nmi_watchdog", "kernel/watchdog",
	"kernel/timer_migration",
	"kernel/perf_event_paranoid", "kernel/randomize_va_space", "kernel/io_uring_disabled",
	"kernel/unprivileged_bpf_disabled",
	"fs/aio-max-nr", "fs/file-max",
}

func (h host) sysctls(f *Facts) {
	f.Sysctls = map[string]string{}
	for _, pattern := range sysctls {
		for _, path := range h.find(filepath.Join("proc/sys", pattern)) {
			value := h.read(path)
			if value == "" {
				continue
			}
			// The names of sysctls have dots for slashes, and slashes for dots that are part of a
			// name.
			name := strings.ReplaceAll(strings.TrimPrefix(path, "proc/sys/"), "/", ".")
			f.Sysctls[name] = strings.Join(strings.Fields(value), " ")
		}
	}
}

func (h host) clock(f *Facts) {
	const dir = "sys/devices/system/clocksource/clocksource0"
	f.Clock = Clock{h.read(dir + "/current_clocksource"), strings.Fields(h.read(dir + "/available_clocksource"))}
}

func (h host) mitigation(f *Facts) {
	const dir = "sys/devices/system/cpu/vulnerabilities"
	f.Mitigation = map[string]string{}
	for _, name := range h.names(dir) {
		f.Mitigation[name] = h.read(filepath.Join(dir, name))
	}
}

// virtual reads the signs of a virtual machine: the processor's hypervisor flag, /sys/hypervisor,
// and the names in the firmware.
func (h host) virtual(f *Facts) {
	v := Virtual{
		Kind: h.read("sys/hypervisor/type"), Vendor: h.read("sys/class/dmi/id/sys_vendor"),
		Product:   h.read("sys/class/dmi/id/product_name"),
		Container: h.read("run/systemd/container"),
	}
	v.Machine = v.Kind != "" || slices.Contains(f.Processors.Flags, "hypervisor")
	if v.Container == "" && h.has(".dockerenv") {
		v.Container = "docker"
	}
	f.Virtual = v
}

func (h host) cgroups(f *Facts) {
	one, two, seen := false, false, map[string]bool{}
	mounts, _ := h.proc.GetMounts()
	for _, m := range mounts {
		switch m.FSType {
		case "cgroup":
			one = true
			for option, value := range m.SuperOptions {
				if value == "" && option != "rw" && option != "ro" && option != "xattr" && option != "clone_children" {
					seen[option] = true
				}
			}
		case "cgroup2":
			two = true
			for _, name := range strings.Fields(h.read(filepath.Join(m.MountPoint, "cgroup.controllers"))) {
				seen[name] = true
			}
		}
	}
	f.Cgroups.Version = map[[2]bool]string{{true, false}: "1", {false, true}: "2",
		{true, true}: "1 and 2"}[[2]bool{one, two}]
	for name := range seen {
		f.Cgroups.Controllers = append(f.Cgroups.Controllers, name)
	}
	slices.Sort(f.Cgroups.Controllers)
}

// distribution returns the host's name for itself (os-release(5)).
func (h host) distribution() string {
	text := h.read("etc/os-release")
	if text == "" {
		text = h.read("usr/lib/os-release")
	}
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			return strings.Trim(strings.TrimSpace(name), `"'`)
		}
	}
	return ""
}
