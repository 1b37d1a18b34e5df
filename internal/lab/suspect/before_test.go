package suspect

import (
	"slices"
	"strings"
	"testing"

	"orrery/internal/host/doctor"
	"orrery/internal/lab/facts"
	"orrery/internal/lab/test"
)

// fit returns the facts of a host without problems.
func fit() facts.Facts {
	return facts.Facts{
		Processors: facts.Processors{
			Cores: 4, Threads: 8, SMT: "on", Siblings: [][]int{{0, 4}, {1, 5}, {2, 6}, {3, 7}}, Turbo: facts.TurboOff,
			Scaling: []facts.Scaling{{Processors: []int{0, 1, 2, 3, 4, 5, 6, 7}, Driver: "intel_pstate",
				Governor: "performance"}},
		},
		Clock:   facts.Clock{Source: "tsc", Available: []string{"tsc", "hpet"}},
		Memory:  facts.Memory{Total: 64 << 30, SwapTotal: 1 << 30},
		Sysctls: map[string]string{"net.core.rmem_max": "16777216", "net.bridge.bridge-nf-call-iptables": "0"},
		Interfaces: []facts.Interface{
			{Name: "eno1", MTU: 1500}, {Name: "orb1", MTU: 1500, Driver: "bridge"},
			{Name: "veth1", MTU: 1500, Driver: "veth", Master: "orb1"},
		},
		Directory: &facts.Directory{Path: "/data", Type: "xfs", Direct: true},
		Load:      []float64{0.1, 0.1, 0.1},
	}
}

var allKinds = []string{"capture", "net", "micro", "cpu", "disk", "mpi", "command"}

func TestBefore(t *testing.T) {
	wire := []string{"capture", "net", "mpi"}
	clocked := []string{"capture", "net", "mpi", "micro", "cpu"}
	timed := []string{"capture", "net", "mpi", "micro"}
	for name, c := range map[string]struct {
		change  func(*facts.Facts)
		subject Subject
		label   string
		kinds   []string // kinds that get the label; no others do
		why     string
		cure    string
	}{
		"fit": {func(*facts.Facts) {}, Subject{Links: []string{"eno1", "orb1", "veth1"}, File: 1 << 30}, "", nil, "", ""},
		"governor": {
			func(f *facts.Facts) { f.Processors.Scaling[0].Governor = "powersave" }, Subject{},
			Governor, allKinds, "powersave (intel_pstate) on processors 0-7", "scaling_governor",
		},
		"governor of some": {
			func(f *facts.Facts) {
				f.Processors.Scaling = append(f.Processors.Scaling,
					facts.Scaling{Processors: []int{9, 8, 11}, Governor: "schedutil", Driver: "acpi"})
			}, Subject{}, Governor, allKinds, "schedutil (acpi) on processors 8-9,11", "performance",
		},
		"no cpufreq": {func(f *facts.Facts) { f.Processors.Scaling = nil }, Subject{}, "", nil, "", ""},
		"turbo intel": {func(f *facts.Facts) { f.Processors.Turbo = facts.TurboOnIntel }, Subject{}, Turbo, clocked,
			"nominal", "no_turbo"},
		"turbo": {func(f *facts.Facts) { f.Processors.Turbo = facts.TurboOn }, Subject{}, Turbo, clocked, "nominal",
			"cpufreq/boost"},
		"pinned to siblings": {
			func(*facts.Facts) {}, Subject{Pins: [][]int{{0}, {4, 1}}}, SMT, clocked, "processors 0,4, to which", "lscpu",
		},
		"pinned to all":   {func(*facts.Facts) {}, Subject{Pins: [][]int{{0, 1, 2, 3, 4, 5, 6, 7}}}, "", nil, "", ""},
		"pinned to cores": {func(*facts.Facts) {}, Subject{Pins: [][]int{{0}, {1}}}, "", nil, "", ""},
		"more tasks": {func(*facts.Facts) {}, Subject{Copies: 8}, SMT, clocked, "8 tasks on 4 cores of 2 threads",
			"smt/control"},
		"both ends here":     {func(*facts.Facts) {}, Subject{Copies: 3, Far: true}, SMT, clocked, "6 tasks", "smt/control"},
		"a core for each":    {func(*facts.Facts) {}, Subject{Copies: 4}, "", nil, "", ""},
		"more tasks, no SMT": {func(f *facts.Facts) { f.Processors.Siblings = nil }, Subject{Copies: 8}, "", nil, "", ""},
		"kvm-clock, and tsc": {func(f *facts.Facts) { f.Clock.Source = "kvm-clock" }, Subject{}, Clocksource, timed,
			"kvm-clock", "echo tsc >"},
		"hpet, and no tsc": {func(f *facts.Facts) { f.Clock = facts.Clock{Source: "hpet", Available: []string{"hpet"}} },
			Subject{}, Clocksource, timed, "hpet", "tsc=reliable"},
		"ARM's clock": {func(f *facts.Facts) { f.Clock.Source = "arch_sys_counter" }, Subject{}, "", nil, "", ""},
		"virtual": {func(f *facts.Facts) { f.Virtual = facts.Virtual{Machine: true, Vendor: "QEMU"} },
			Subject{}, Virtual, allKinds, "(QEMU)", "physical machine"},
		"rmem, rate unknown": {func(f *facts.Facts) { f.Sysctls["net.core.rmem_max"] = "212992" }, Subject{}, RMem,
			[]string{"capture"}, "212992", "rmem_max=2097152"},
		"rmem for the rate": {func(*facts.Facts) {}, Subject{Rate: 40e9}, RMem, []string{"capture"}, "40 Gb/s",
			"rmem_max=67108864"},
		"rmem for a low rate": {func(f *facts.Facts) { f.Sysctls["net.core.rmem_max"] = "212992" }, Subject{Rate: 1e6}, "",
			nil, "", ""},
		"bridge-nf": {
			func(f *facts.Facts) { f.Sysctls["net.bridge.bridge-nf-call-iptables"] = "1" }, Subject{Links: []string{"veth1"}},
			BridgeNF, wire, "bridge-nf-call-iptables", "sysctl -w net.bridge.bridge-nf-call-iptables=0",
		},
		"bridge-nf, no bridge": {
			func(f *facts.Facts) { f.Sysctls["net.bridge.bridge-nf-call-iptables"] = "1" }, Subject{Links: []string{"eno1"}},
			"", nil, "", "",
		},
		"netfilter": {
			func(f *facts.Facts) {
				f.Netfilter = facts.Netfilter{Tables: []string{"inet filter", "ip nat"}, Chains: 5, Rules: 80, Tracking: true}
			}, Subject{Aside: true}, Netfilter, append([]string{"micro"}, wire...),
			"5 chains of 2 tables with 80 rules of nftables, connection tracking", "nft list",
		},
		"netfilter, but routed": {
			func(f *facts.Facts) { f.Netfilter.Chains = 5 }, Subject{}, "", nil, "", "",
		},
		"mtu": {
			func(f *facts.Facts) { f.Interfaces[0].MTU = 9000 }, Subject{Links: []string{"eno1", "veth1", "not-there"}},
			MTU, wire, "eno1 9000, veth1 1500", "ip link set dev veth1 mtu 9000",
		},
		"offload": {
			func(f *facts.Facts) {
				f.Interfaces[0].Offloads = []string{"rx-gro", "tx-checksum", "tx-generic-segmentation"}
			},
			Subject{Links: []string{"eno1", "orb1"}}, Offload, []string{"capture", "net"}, "eno1 (gro, gso)",
			"ethtool -K eno1 gro off gso off",
		},
		"offload elsewhere": {
			func(f *facts.Facts) { f.Interfaces[0].Offloads = []string{"rx-gro"} }, Subject{Links: []string{"orb1"}}, "", nil,
			"", "",
		},
		"no O_DIRECT": {
			func(f *facts.Facts) { f.Directory.Direct, f.Directory.Why = false, "EINVAL" }, Subject{File: 200 << 30},
			Direct, []string{"disk"}, "EINVAL", "dir =",
		},
		"in memory": {
			func(f *facts.Facts) { f.Directory.Type = "tmpfs" }, Subject{}, PageCache, []string{"disk"}, "not on a disk",
			"dir =",
		},
		"a guest's files": {
			func(*facts.Facts) {}, Subject{Cached: "cache = writeback"}, PageCache, []string{"disk"}, "cache = writeback",
			"cache = \"none\"",
		},
		"swap":      {func(f *facts.Facts) { f.Memory.SwapUsed = 1 << 30 }, Subject{}, Swap, allKinds, "1.0 GiB", "swapoff"},
		"some swap": {func(f *facts.Facts) { f.Memory.SwapUsed = 1 << 20 }, Subject{}, "", nil, "", ""},
		"no facts": {func(f *facts.Facts) { *f = facts.Facts{} }, Subject{Links: []string{"eno1"}, Copies: 8}, "", nil, "",
			""},
		"no O_DIRECT, tiny file": {
			func(f *facts.Facts) { f.Directory.Direct = false; f.Directory.Type = "nfs"; f.Memory.Total = 1 }, Subject{File: 2},
			Direct, []string{"disk"}, "nfs", "dir =",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := fit()
			c.change(&f)
			for _, kind := range allKinds {
				c.subject.Kind = kind
				labels := Before(f, c.subject)
				if !slices.Contains(c.kinds, kind) {
					if len(labels) > 0 {
						t.Errorf("%s: %+v", kind, labels)
					}
					continue
				}
				expectLabel(t, labels, c.label, c.why, c.cure)
			}
		})
	}
}

func expectLabel(t *testing.T, labels []test.Label, name, why, cure string) {
	t.Helper()
	if len(labels) != 1 || labels[0].Name != name || !strings.Contains(labels[0].Why, why) ||
		!strings.Contains(labels[0].Cure, cure) {
		t.Errorf("%+v, and not %s because of %q, cured by %q", labels, name, why, cure)
	}
}

// TestPageCache: without O_DIRECT, a file that fits into memory has two labels.
func TestPageCache(t *testing.T) {
	f := fit()
	f.Directory.Direct = false
	labels := Before(f, Subject{Kind: "disk", File: 10 << 30})
	if len(labels) != 2 || labels[1].Name != PageCache || !strings.Contains(labels[1].Why, "10.0 GiB fits") ||
		!strings.Contains(labels[1].Cure, "128.0 GiB") {
		t.Errorf("%+v", labels)
	}
}

// TestOffloadOfTCP: of the figures of net, the label concerns only those of TCP.
func TestOffloadOfTCP(t *testing.T) {
	f := fit()
	f.Interfaces[0].Offloads = []string{"rx-gro"}
	if l := Before(f, Subject{Kind: "net", Links: []string{"eno1"}}); len(l) != 1 || l[0].Where != "tcp" {
		t.Errorf("%+v", l)
	}
}

func TestHost(t *testing.T) {
	unfit := fit()
	unfit.Processors.Scaling[0].Governor = "powersave"
	unfit.Sysctls = map[string]string{"net.bridge.bridge-nf-call-iptables": "1", "net.core.rmem_max": "212992"}
	unfit.Load[0] = 3
	for name, c := range map[string]struct {
		facts facts.Facts
		bad   []string
	}{
		"fit, but SMT": {fit(), []string{"SMT"}},
		"unfit":        {unfit, []string{"governor", "SMT", "receive buffers", "bridge-nf", "load"}},
		"untold":       {facts.Facts{}, nil},
	} {
		var bad []string
		for _, found := range Host(c.facts) {
			if found.Name == "" || found.Value == "" || found.OK != (found.Fix == "") || found.Level != doctor.Recommended {
				t.Errorf("%s: %+v", name, found)
			}
			if !found.OK {
				bad = append(bad, found.Name)
			}
		}
		if !slices.Equal(bad, c.bad) {
			t.Errorf("%s: %v, not %v", name, bad, c.bad)
		}
	}
}
