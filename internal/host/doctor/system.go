package doctor

import (
	"fmt"
	"orrery/internal/host"
	"os"
	"runtime"
	"strings"
)

// system returns what kind of machine this is.
func (m machine) system() Facts {
	return Facts{user(), processors(), m.memory(), m.virtualization(), m.initSystem()}
}

func user() Fact {
	if uid := os.Geteuid(); uid != 0 {
		return Fact{"user", false, Required, fmt.Sprintf("uid %d", uid), "run orrery as root"}
	}
	return Fact{"user", true, Required, "root", ""}
}

func processors() Fact {
	return Fact{"processors", true, Info, fmt.Sprint(runtime.NumCPU()), ""}
}

func (m machine) memory() Fact {
	value := formatGiB(host.TotalMemory())
	var swap int64
	fmt.Sscan(m.field("proc/meminfo", "SwapTotal"), &swap) //nolint:errcheck // without any, there is nothing to say
	if swap > 0 {
		value += ", " + formatGiB(swap<<10) + " swap"
	}
	return Fact{"memory", true, Info, value, ""}
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
	return strings.Contains(" "+m.field("proc/cpuinfo", "flags")+" ", " "+flag+" ")
}

func (m machine) initSystem() Fact {
	name := m.read("proc/1/comm")
	if name == "systemd" {
		return Fact{"init system", true, Recommended, "systemd", ""}
	}
	return Fact{"init system", false, Recommended, name + ", not systemd",
		"nodes work anyway; have your init system run `orrery up` after a reboot"}
}

func formatGiB(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }
