package facts

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/problem"
)

// files creates the files of a root.
func files(t *testing.T, all map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range all {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if to, link := strings.CutPrefix(text, "-> "); link {
			err = os.Symlink(to, path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func collect(t *testing.T, o Options) Facts {
	t.Helper()
	f, err := Collect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func expect[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n%+v instead of\n%+v", what, got, want)
	}
}

const cpuinfo = `processor	: 0
vendor_id	: GenuineIntel
cpu family	: 6
model		: 85
model name	: Intel(R) Xeon(R) Gold 6242R CPU @ 3.10GHz
stepping	: 7
microcode	: 0x5003604
cpu MHz		: 1200.500
cache size	: 36608 KB
physical id	: 0
siblings	: 4
core id		: 0
cpu cores	: 2
apicid		: 0
initial apicid	: 0
fpu		: yes
fpu_exception	: yes
cpuid level	: 22
wp		: yes
flags		: fpu vme constant_tsc nonstop_tsc
bugs		: spectre_v1
bogomips	: 6200.00
clflush size	: 64
cache_alignment	: 64
address sizes	: 46 bits physical, 48 bits virtual
power management:

`

// server creates the files of a bare machine with one socket, two cores with two threads each, a
// NIC and a disk.
func server(t *testing.T) string {
	all := map[string]string{
		"proc/cpuinfo": cpuinfo + strings.ReplaceAll(cpuinfo, "processor	: 0", "processor	: 1") +
			strings.ReplaceAll(cpuinfo, "processor	: 0", "processor	: 2") + strings.ReplaceAll(cpuinfo, "processor	: 0",
			"processor	: 3"),
		"proc/loadavg": "0.10 0.20 0.30 1/300 999\n",
		"proc/meminfo": "MemTotal:       197485736 kB\nMemAvailable:   100000000 kB\nSwapTotal:      8388604 kB\nSwapFree:       8388600 kB\n",
		"proc/cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/sda1 quiet\n", "proc/sys/kernel/osrelease": "6.1.0-18-amd64\n",
		"proc/sys/kernel/hostname":                    "sv1\n",
		"proc/sys/kernel/version":                     "#1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1\n",
		"proc/sys/kernel/tainted":                     "0\n",
		"proc/sys/net/core/rmem_max":                  "212992\n",
		"proc/sys/net/ipv4/udp_mem":                   "1\t2\t3\n",
		"proc/sys/vm/dirty_ratio":                     "20\n",
		"proc/sys/kernel/sched_tunable":               "7\n",
		"proc/sys/net/bridge/bridge-nf-call-iptables": "1\n",
		"proc/self/mountinfo": "25 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n" +
			"26 25 8:17 / /data rw,noatime - xfs /dev/sdb1 rw,attr2\n" +
			"30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
		"sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
		"data/lab/x":                       "",
		"etc/os-release":                   "NAME=Debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n",
		"sys/devices/system/clocksource/clocksource0/current_clocksource":   "tsc\n",
		"sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet acpi_pm \n",
		"sys/devices/system/cpu/vulnerabilities/meltdown":                   "Not affected\n",
		"sys/devices/system/cpu/smt/control":                                "on\n",
		"sys/devices/system/cpu/online":                                     "0-3\n",
		"sys/devices/system/cpu/isolated":                                   "\n",
		"sys/devices/system/cpu/intel_pstate/no_turbo":                      "0\n",
		"sys/devices/system/cpu/cpuidle/current_driver":                     "intel_idle\n",
		"sys/devices/system/cpu/cpuidle/current_governor_ro":                "menu\n",
		"sys/devices/system/node/node0/cpulist":                             "0-3\n",
		"sys/devices/system/node/node0/distance":                            "10 21\n",
		"sys/devices/system/node/node0/meminfo":                             "Node 0 MemTotal:       97485736 kB\nNode 0 MemFree: 1 kB\n",
		"sys/kernel/mm/transparent_hugepage/enabled":                        "always [madvise] never\n",
		"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages":             "512\n",
		"sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages":           "500\n",
		"sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages":          "0\n",
		"sys/kernel/debug/sched/preempt":                                    "none (voluntary) full\n",
		"sys/class/dmi/id/sys_vendor":                                       "Dell Inc.\n",
		"sys/class/dmi/id/product_name":                                     "PowerEdge R640\n",

		"sys/devices/pci0/0000:3b:00.0/net/eno1/mtu":                  "9000\n",
		"sys/devices/pci0/0000:3b:00.0/net/eno1/speed":                "25000\n",
		"sys/devices/pci0/0000:3b:00.0/net/eno1/duplex":               "full\n",
		"sys/devices/pci0/0000:3b:00.0/net/eno1/operstate":            "up\n",
		"sys/devices/pci0/0000:3b:00.0/net/eno1/uevent":               "INTERFACE=eno1\n",
		"sys/devices/pci0/0000:3b:00.0/net/eno1/device":               "-> ../../../0000:3b:00.0",
		"sys/devices/pci0/0000:3b:00.0/net/eno1/queues/rx-0/rps_cpus": "0\n",
		"sys/devices/pci0/0000:3b:00.0/net/eno1/queues/rx-1/rps_cpus": "0\n",
		"sys/devices/pci0/0000:3b:00.0/net/eno1/queues/tx-0/xps_cpus": "0\n",
		"sys/devices/pci0/0000:3b:00.0/msi_irqs/41":                   "msix\n",
		"sys/devices/pci0/0000:3b:00.0/msi_irqs/42":                   "msix\n",
		"sys/devices/pci0/0000:3b:00.0/numa_node":                     "0\n",
		"sys/devices/pci0/0000:3b:00.0/driver":                        "-> ../../../bus/pci/drivers/mlx5_core",
		"sys/class/net/eno1":                                          "-> ../../devices/pci0/0000:3b:00.0/net/eno1",
		"sys/devices/virtual/net/orb1/mtu":                            "1500\n",
		"sys/devices/virtual/net/orb1/speed":                          "-1\n",
		"sys/devices/virtual/net/orb1/uevent":                         "DEVTYPE=bridge\nINTERFACE=orb1\n",
		"sys/class/net/orb1":                                          "-> ../../devices/virtual/net/orb1",
		"sys/devices/virtual/net/veth1/mtu":                           "1500\n",
		"sys/devices/virtual/net/veth1/master":                        "-> ../orb1",
		"sys/class/net/veth1":                                         "-> ../../devices/virtual/net/veth1",
		"sys/class/net/bonding_masters":                               "\n",

		"sys/block/loop0/size": "0\n", "sys/block/sdb/size": "1000000\n", "sys/block/sdb/device/vendor": "ATA     \n",
		"sys/block/sdb/device/model":     "INTEL SSD\n",
		"sys/block/sdb/queue/rotational": "0\n", "sys/block/sdb/queue/scheduler": "none [mq-deadline]\n",
		"sys/block/sdb/queue/write_cache":        "write back\n",
		"sys/block/sdb/queue/logical_block_size": "512\n", "sys/block/sdb/queue/physical_block_size": "4096\n",
		"sys/block/nvme0n1/size": "2000\n", "sys/block/nvme0n1/queue/scheduler": "none\n",
		"sys/block/nvme0n1/device/model": "P4510\n",
		"sys/block/sdb/sdb1/partition":   "1\n", "sys/dev/block/8:17": "-> ../../block/sdb/sdb1",
	}
	for i, siblings := range []string{"0,2", "1,3", "0,2", "1,3"} {
		cpu := "sys/devices/system/cpu/cpu" + string(rune('0'+i))
		all[cpu+"/topology/thread_siblings_list"] = siblings + "\n"
		all[cpu+"/topology/physical_package_id"] = "0\n"
		policy := "sys/devices/system/cpu/cpufreq/policy" + string(rune('0'+i))
		all[policy+"/scaling_driver"], all[policy+"/affected_cpus"] = "intel_pstate\n", string(rune('0'+i))+"\n"
		all[policy+"/scaling_governor"] = map[bool]string{true: "powersave\n", false: "performance\n"}[i == 3]
		all[policy+"/scaling_min_freq"], all[policy+"/scaling_max_freq"] = "1200000\n", "4100000\n"
	}
	return files(t, all)
}

func TestServer(t *testing.T) {
	f := collect(t, Options{Root: server(t), Dir: "/data/lab"})
	expect(t, "host", f.Host, "sv1")
	expect(t, "kernel", f.Kernel, Kernel{
		Release: "6.1.0-18-amd64", Version: "#1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1",
		CommandLine:  "BOOT_IMAGE=/vmlinuz root=/dev/sda1 quiet",
		Distribution: "Debian GNU/Linux 12 (bookworm)", Preemption: "voluntary", Tainted: "0",
	})
	expect(t, "processors", f.Processors, Processors{
		Model: "Intel(R) Xeon(R) Gold 6242R CPU @ 3.10GHz", Vendor: "GenuineIntel", Family: "6/85/7",
		Microcode: "0x5003604", Clock: 1200.5e6,
		Cache: "36608 KB", Sockets: 1, Cores: 2, Threads: 4, Online: "0-3", SMT: "on", Siblings: [][]int{{0, 2}, {1, 3}},
		Scaling: []Scaling{
			{[]int{0, 1, 2}, "intel_pstate", "performance", "", 1200000, 4100000},
			{[]int{3}, "intel_pstate", "powersave", "", 1200000, 4100000},
		},
		Turbo: TurboOnIntel, Idle: IdleDriver{"intel_idle", "menu"}, Bugs: []string{"spectre_v1"},
		Flags: []string{"fpu", "vme", "constant_tsc", "nonstop_tsc"},
	})
	expect(t, "NUMA", f.NUMA, []NUMA{{0, "0-3", 97485736 << 10, []int{10, 21}}})
	expect(t, "memory", f.Memory, Memory{197485736 << 10, 100000000 << 10, 8388604 << 10, 4 << 10,
		[]HugePages{{2 << 20, 512, 500}}, "madvise"})
	expect(t, "clock", f.Clock, Clock{"tsc", []string{"tsc", "hpet", "acpi_pm"}})
	expect(t, "mitigation", f.Mitigation, map[string]string{"meltdown": "Not affected"})
	expect(t, "sysctls", f.Sysctls, map[string]string{
		"net.core.rmem_max": "212992", "net.ipv4.udp_mem": "1 2 3", "vm.dirty_ratio": "20", "kernel.sched_tunable": "7",
		"net.bridge.bridge-nf-call-iptables": "1",
	})
	expect(t, "virtual", f.Virtual, Virtual{Vendor: "Dell Inc.", Product: "PowerEdge R640"})
	expect(t, "cgroups", f.Cgroups, Cgroups{"2", []string{"cpu", "cpuset", "io", "memory", "pids"}})
	expect(t, "load", f.Load, []float64{0.1, 0.2, 0.3})
	expect(t, "interfaces", f.Interfaces, []Interface{
		{Name: "eno1", Driver: "mlx5_core", Bus: "0000:3b:00.0", MTU: 9000, Speed: 25e9, Duplex: "full", State: "up",
			Queues: Queues{2, 1}, Interrupts: 2, NUMA: "0"},
		{Name: "orb1", Driver: "bridge", MTU: 1500}, {Name: "veth1", MTU: 1500, Master: "orb1"},
	})
	expect(t, "blocks", f.Blocks, []Block{
		{Name: "nvme0n1", Model: "P4510", Size: 1024000, Scheduler: "none"},
		{Name: "sdb", Model: "ATA INTEL SSD", Size: 512000000, Scheduler: "mq-deadline", Cache: "write back", Sector: 512,
			Physical: 4096},
	})
	expect(t, "directory", f.Directory, &Directory{
		Path: "/data/lab", Mount: "/data", Source: "/dev/sdb1", Block: "sdb", Type: "xfs",
		Options: []string{"attr2", "noatime", "rw"},
	})
}

func TestVirtual(t *testing.T) {
	for want, all := range map[Virtual]map[string]string{
		{}:                           {},
		{Machine: true, Kind: "xen"}: {"sys/hypervisor/type": "xen\n"},
		{Machine: true, Vendor: "QEMU", Container: "docker"}: {
			"proc/cpuinfo": strings.Replace(cpuinfo, "fpu vme", "fpu hypervisor", 1), "sys/class/dmi/id/sys_vendor": "QEMU\n",
			".dockerenv": "",
		},
		{Container: "lxc"}: {"run/systemd/container": "lxc\n"},
	} {
		all["proc/version"] = "Linux"
		expect(t, "virtual", collect(t, Options{Root: files(t, all)}).Virtual, want)
	}
}

func TestTurbo(t *testing.T) {
	for file, want := range map[string]Turbo{
		"intel_pstate/no_turbo 0": TurboOnIntel, "intel_pstate/no_turbo 1": TurboOff, "cpufreq/boost 1": TurboOn,
		"cpufreq/boost 0": TurboOff, "x y": "",
	} {
		name, text, _ := strings.Cut(file, " ")
		root := files(t, map[string]string{"proc/version": "Linux", cpuDir + "/" + name: text + "\n"})
		expect(t, file, collect(t, Options{Root: root}).Processors.Turbo, want)
	}
}

// TestNothing: a host whose files are missing still has facts, but one without /proc is an error.
func TestNothing(t *testing.T) {
	f := collect(t, Options{Root: files(t, map[string]string{"proc/version": "Linux"}), Dir: "/x",
		Interfaces: []string{"none"}})
	f.Taken = time.Time{}
	expect(t, "facts", f, Facts{Clock: Clock{Available: []string{}}, Mitigation: map[string]string{},
		Sysctls: map[string]string{}, Directory: &Directory{Path: "/x"}})
	var p *problem.Problem
	if _, err := Collect(t.Context(), Options{Root: t.TempDir()}); !errors.As(err, &p) || p.Kind != problem.Unable {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Collect(ctx, Options{}); !errors.As(err, &p) || p.Kind != problem.Interrupted {
		t.Error(err)
	}
}

// TestHere collects the facts of this machine.
func TestHere(t *testing.T) {
	dir := t.TempDir()
	f := collect(t, Options{Dir: dir, Interfaces: []string{"lo", "not-there"}})
	if f.Kernel.Release == "" || f.Kernel.Machine == "" || f.Processors.Threads < 1 || f.Memory.Total <= 0 ||
		f.Host == "" {
		t.Errorf("%+v", f)
	}
	if len(f.Interfaces) != 1 || f.Interfaces[0].MTU < 1500 || !slices.IsSorted(f.Interfaces[0].Offloads) {
		t.Errorf("%+v", f.Interfaces)
	}
	if d := f.Directory; d.Type == "" || d.Size <= 0 || d.Direct == (d.Why != "") {
		t.Errorf("%+v", d)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	if _, err := json.Marshal(f); err != nil {
		t.Error(err)
	}
}

func TestTryDirect(t *testing.T) {
	if err := TryDirect(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("it works where nothing is")
	}
	if err := TryDirect("/proc"); err == nil || !strings.Contains(err.Error(), "O_DIRECT") {
		t.Errorf("it works in /proc: %v", err)
	}
}

func TestNumbers(t *testing.T) {
	for list, want := range map[string][]int{"0-3,8": {0, 1, 2, 3, 8}, "5\n": {5}, "": nil, "x-y": nil, "1-z,4": {4}} {
		expect(t, list, Numbers(list), want)
	}
}
