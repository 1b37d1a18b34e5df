package doctor

import (
	"fmt"
	"orrery/internal/host"
	"os"
	"runtime"
	"strings"
)

// system says what sort of machine this is.
func (m machine) system() Facts {
	return Facts{m.user(), m.processors(), m.memory(), m.virtualization(), m.initSystem()}
}

func (m machine) user() Fact {
	if uid := os.Geteuid(); uid != 0 {
		return Fact{"user", false, Needed, fmt.Sprintf("uid %d", uid), "run orrery as root"}
	}
	return Fact{"user", true, Needed, "root", ""}
}

func (m machine) processors() Fact {
	return Fact{"processors", true, Info, fmt.Sprint(runtime.NumCPU()), ""}
}

func (m machine) memory() Fact {
	value := gib(host.TotalMemory())
	if swap := m.meminfo("SwapTotal"); swap > 0 {
		value += ", " + gib(swap) + " swap"
	}
	return Fact{"memory", true, Info, value, ""}
}

// meminfo returns a line of proc_meminfo(5), in bytes.
func (m machine) meminfo(key string) int64 {
	for line := range strings.Lines(m.read("proc/meminfo")) {
		var kib int64
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			fmt.Sscan(rest, &kib) //nolint:errcheck // 0 says as much
			return kib << 10
		}
	}
	return 0
}

func (m machine) virtualization() Fact {
	var layers []string
	switch {
	case m.read("sys/hypervisor/type") != "":
		layers = append(layers, "virtual machine ("+m.read("sys/hypervisor/type")+")")
	case m.processorHas("hypervisor"):
		vendor := strings.TrimSpace(m.read("sys/class/dmi/id/sys_vendor") + " " + m.read("sys/class/dmi/id/product_name"))
		layers = append(layers, strings.TrimSuffix("virtual machine ("+vendor+")", " ()"))
	}
	switch {
	case m.has("run/systemd/container"):
		layers = append(layers, "container ("+m.read("run/systemd/container")+")")
	case m.has(".dockerenv"):
		layers = append(layers, "container (docker)")
	}
	if len(layers) == 0 {
		layers = []string{"none"}
	}
	return Fact{"virtualization", true, Info, strings.Join(layers, ", in it a "), ""}
}

// processorHas reports whether a flag is set for the first processor of /proc/cpuinfo.
func (m machine) processorHas(flag string) bool {
	for line := range strings.Lines(m.read("proc/cpuinfo")) {
		if key, flags, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "flags" {
			return strings.Contains(" "+strings.TrimSpace(flags)+" ", " "+flag+" ")
		}
	}
	return false
}

func (m machine) initSystem() Fact {
	name := m.read("proc/1/comm")
	if name == "systemd" {
		return Fact{"init system", true, Wanted, "systemd", ""}
	}
	return Fact{"init system", false, Wanted, name + ", not systemd",
		"nodes work all the same; after a reboot, have `orrery up` run by what starts your services"}
}

func gib(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }
