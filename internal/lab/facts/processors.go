package facts

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Processors describes the host's processors.
type Processors struct {
	Model     string  `json:"model,omitempty"`
	Vendor    string  `json:"vendor,omitempty"`
	Family    string  `json:"family,omitempty"` // family, model and stepping, as in 6/85/7
	Microcode string  `json:"microcode,omitempty"`
	Clock     float64 `json:"clock,omitempty"` // of the first processor in Hz, when it was read
	Cache     string  `json:"cache,omitempty"` // of the last level
	Sockets   int     `json:"sockets,omitempty"`
	Cores     int     `json:"cores,omitempty"`
	Threads   int     `json:"threads,omitempty"` // online
	Online    string  `json:"online,omitempty"`  // list in the kernel's format
	Isolated  string  `json:"isolated,omitempty"`
	NoTicks   string  `json:"no_ticks,omitempty"` // nohz_full
	// SMT is whether cores run several threads: "on", "off", "notsupported" …, or "" if the kernel
	// does not report it.
	SMT      string     `json:"smt,omitempty"`
	Siblings [][]int    `json:"siblings,omitempty"` // threads that share a core, for cores with several
	Scaling  []Scaling  `json:"scaling,omitempty"`
	Turbo    Turbo      `json:"turbo,omitempty"`
	Idle     IdleDriver `json:"idle,omitzero"`
	Bugs     []string   `json:"bugs,omitempty"`
	Flags    []string   `json:"flags,omitempty"`
}

// Scaling is how the clock frequency of some processors is controlled.
type Scaling struct {
	Processors []int  `json:"processors"`
	Driver     string `json:"driver,omitempty"`
	Governor   string `json:"governor,omitempty"`
	Preference string `json:"preference,omitempty"` // energy_performance_preference
	Least      int64  `json:"least,omitempty"`      // kHz
	Most       int64  `json:"most,omitempty"`       // kHz
}

// Turbo is whether processors may exceed their nominal clock, and which interface controls it.
type Turbo string

// The values of Turbo. It is empty if the host does not report it, as in virtual machines.
const (
	TurboOnIntel Turbo = "on (intel_pstate)"
	TurboOn      Turbo = "on (cpufreq)"
	TurboOff     Turbo = "off"
)

// IdleDriver is the driver that puts idle processors to sleep. Deep sleep states increase latency.
type IdleDriver struct {
	Driver   string `json:"driver,omitempty"`
	Governor string `json:"governor,omitempty"`
}

const cpuDir = "sys/devices/system/cpu"

func (h host) processors(f *Facts) {
	p := &f.Processors
	h.cpuinfo(p)
	h.topology(p)
	p.Online, p.Isolated, p.NoTicks = h.read(cpuDir+"/online"), h.read(cpuDir+"/isolated"), h.read(cpuDir+"/nohz_full")
	p.SMT = h.read(cpuDir + "/smt/control")
	p.Turbo = h.turbo()
	p.Idle = IdleDriver{h.read(cpuDir + "/cpuidle/current_driver"), h.read(cpuDir + "/cpuidle/current_governor_ro")}
	p.Scaling = h.scaling()
}

// cpuinfo reads the first processor in /proc/cpuinfo. The others are assumed to be equal.
func (h host) cpuinfo(p *Processors) {
	all, err := h.proc.CPUInfo()
	if err != nil || len(all) == 0 {
		return
	}
	first := all[0]
	p.Threads = len(all)
	p.Model, p.Vendor, p.Microcode = first.ModelName, first.VendorID, first.Microcode
	p.Family = strings.Trim(strings.Join([]string{first.CPUFamily, first.Model, first.Stepping}, "/"), "/")
	p.Clock, p.Cache, p.Bugs, p.Flags = first.CPUMHz*1e6, first.CacheSize, first.Bugs, first.Flags
}

// topology counts sockets and cores, and finds threads that share a core.
func (h host) topology(p *Processors) {
	sockets, cores := map[string]bool{}, map[string]bool{}
	for _, dir := range h.find(cpuDir + "/cpu[0-9]*/topology") {
		list := h.read(filepath.Join(dir, "thread_siblings_list"))
		if list == "" { // offline
			continue
		}
		sockets[h.read(filepath.Join(dir, "physical_package_id"))] = true
		if cores[list] {
			continue
		}
		cores[list] = true
		if threads := Numbers(list); len(threads) > 1 {
			p.Siblings = append(p.Siblings, threads)
		}
	}
	p.Sockets, p.Cores = len(sockets), len(cores)
}

// turbo tries intel_pstate first. Its file has the inverse meaning of that of cpufreq (the kernel's
// Documentation/admin-guide/pm).
func (h host) turbo() Turbo {
	switch h.read(cpuDir + "/intel_pstate/no_turbo") {
	case "0":
		return TurboOnIntel
	case "1":
		return TurboOff
	}
	switch h.read(cpuDir + "/cpufreq/boost") {
	case "1":
		return TurboOn
	case "0":
		return TurboOff
	}
	return ""
}

// scaling returns the policies of cpufreq, one for each group of processors with equal values.
func (h host) scaling() []Scaling {
	var all []Scaling
	index := map[string]int{}
	for _, dir := range h.find(cpuDir + "/cpufreq/policy[0-9]*") {
		s := Scaling{
			Driver: h.read(dir + "/scaling_driver"), Governor: h.read(dir + "/scaling_governor"),
			Preference: h.read(dir + "/energy_performance_preference"),
			Least:      h.number(dir + "/scaling_min_freq"), Most: h.number(dir + "/scaling_max_freq"),
		}
		threads := Numbers(strings.Join(strings.Fields(h.read(dir+"/affected_cpus")), ","))
		key := fmt.Sprint(s.Driver, s.Governor, s.Preference, s.Least, s.Most)
		at, ok := index[key]
		if !ok {
			at = len(all)
			index[key] = at
			all = append(all, s)
		}
		all[at].Processors = append(all[at].Processors, threads...)
	}
	return all
}
