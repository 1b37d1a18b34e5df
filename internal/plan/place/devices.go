package place

import (
	"fmt"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// checkHardware returns an error if a host lacks the hardware that a virtual machine needs, or what a node
// needs of the host's kernel. Package check cannot know this.
func checkHardware(key string, n *site.Node, h *observe.Host) error {
	if h.Engines == nil { // the host was not asked
		return nil
	}
	for _, lacks := range []func() error{
		func() error { return checkCPUModel(n, h) },
		func() error { return checkNUMA(n, h) },
		func() error { return checkPCIFunctions(key, n, h) },
		func() error { return checkFeatures(key, n, h) },
	} {
		if err := lacks(); err != nil {
			return err
		}
	}
	return nil
}

// hostModel is QEMU's name for the host's own processors, which only KVM can give to guests.
const hostModel = "host"

// checkCPUModel returns an error if the engine cannot provide a machine's processor model.
func checkCPUModel(n *site.Node, h *observe.Host) error {
	models, model := h.Engines[n.Engine].Models, n.VM.CPU
	if model == hostModel && h.Engines[n.Engine].Accel == observe.TCG {
		const what = "node %s needs the processor model of host %s, which runs its virtual machines in software emulation"
		return problem.New(problem.Unable, what, n.Name, h.Name).At("site.toml").
			Try(`remove vm.cpu, or write "max"; orrery doctor shows why KVM does not work there`)
	}
	if model == "" || len(models) == 0 || slices.Contains(models, model) {
		return nil
	}
	return problem.New(problem.Unable, "node %s needs the processor model %q, which QEMU on host %s does not support",
		n.Name, model, h.Name).At("site.toml").
		Try("%s", problem.SuggestOr(model, models, "`qemu-system-x86_64 -cpu help` lists them"))
}

// checkNUMA returns an error if the host lacks the NUMA node that a machine must be on, or if that
// node lacks the processors to which the machine is pinned.
func checkNUMA(n *site.Node, h *observe.Host) error {
	if n.VM.Numa == nil || len(h.Numa) == 0 {
		return nil
	}
	i := slices.IndexFunc(h.Numa, func(m observe.Numa) bool { return m.ID == *n.VM.Numa })
	if i < 0 {
		ids := make([]string, len(h.Numa))
		for j, m := range h.Numa {
			ids[j] = fmt.Sprint(m.ID)
		}
		return problem.New(problem.Mistake, "node %s is declared on NUMA node %d, but host %s has only %s", n.Name,
			*n.VM.Numa,
			h.Name, humanize.List(ids, 8)).At("site.toml").
			Try("use one of these, or remove numa")
	}
	if far := site.MissingProcessors(n.Limits.Pin, h.Numa[i].Online); far != "" {
		return problem.New(problem.Mistake, "node %s is pinned to processors %s, of which %s are not on NUMA node %d",
			n.Name, n.Limits.Pin, far, *n.VM.Numa).At("site.toml").
			Try("that NUMA node has %s", h.Numa[i].Online)
	}
	return nil
}

// checkPCIFunctions returns an error if a PCI function of a node does not exist, is used by another node, or
// shares an IOMMU group with a device of the host.
func checkPCIFunctions(key string, n *site.Node, h *observe.Host) error {
	holder := fmt.Sprintf("%s/%d", key, n.FullID())
	for _, address := range n.VM.PCI {
		i := slices.IndexFunc(h.Functions, func(f observe.PCIFunction) bool { return f.Address == address })
		if i < 0 {
			return problem.New(problem.Unable, "node %s: host %s has no PCI function %s", n.Name, h.Name, address).
				At("site.toml").Try("lspci -D lists them")
		}
		f := h.Functions[i]
		switch {
		case f.Bridge:
			return problem.New(problem.Mistake, "node %s: PCI function %s of host %s is a bridge, not a device", n.Name,
				address, h.Name).At("site.toml").Try("use the functions behind it")
		case f.Holder != "" && f.Holder != holder:
			return problem.New(problem.Unable, "node %s: PCI function %s of host %s is used by node %s", n.Name,
				address,
				h.Name, f.Holder).Try("stop that node first")
		case f.Group == "":
			return problem.New(problem.Unable,
				"node %s: PCI function %s of host %s has no IOMMU and could access all of the host's memory", n.Name,
				address, h.Name).
				Try("enable the IOMMU in the firmware (VT-d, AMD-Vi), and intel_iommu=on on the kernel's command line")
		}
		if with := iommuGroupPeers(h, f, n.VM.PCI); len(with) > 0 {
			return problem.New(problem.Unable,
				"node %s: PCI function %s of host %s shares its IOMMU group with %s, which the host uses", n.Name,
				address, h.Name,
				strings.Join(with, ", ")).
				Try("give all of them to the node, or put the card into another slot")
		}
	}
	return nil
}

// iommuGroupPeers returns the functions in another function's IOMMU group that a driver of the host uses
// and that the node does not get.
func iommuGroupPeers(h *observe.Host, of observe.PCIFunction, got []string) (all []string) {
	for _, f := range h.Functions {
		if f.Group != of.Group || f.Bridge || f.Driver == "" || f.Driver == "vfio-pci" && f.Holder == of.Holder ||
			slices.Contains(got, f.Address) {
			continue
		}
		all = append(all, f.Address+" ("+f.Driver+")")
	}
	return all
}

// checkHugepages returns an error if a host has too few free hugepages for its machines. It checks the NUMA
// nodes before the whole host.
func checkHugepages(h *observe.Host, nodes []*site.Node) error {
	for _, m := range h.Numa {
		for _, pages := range m.Hugepages {
			p := pool{Hugepages: pages, numa: &m.ID, of: fmt.Sprintf("NUMA node %d of host %s", m.ID, h.Name)}
			if err := p.checkFit(h, nodes); err != nil {
				return err
			}
		}
	}
	for _, pages := range h.Hugepages {
		if err := (pool{Hugepages: pages, of: "host " + h.Name}).checkFit(h, nodes); err != nil {
			return err
		}
	}
	return nil
}

// A pool is the hugepages of one size on a NUMA node or, if numa is nil, on the whole host.
type pool struct {
	observe.Hugepages
	numa *int
	of   string
}

// isFor reports whether a machine's memory must be in these pages.
func (p pool) isFor(v *site.VM) bool {
	return p.Size > 0 && v.Hugepages == p.Size && (p.numa == nil || v.Numa != nil && *v.Numa == *p.numa)
}

// checkFit returns an error if the pages are not enough for machines. The pages that running machines
// use already count as available to them.
func (p pool) checkFit(h *observe.Host, nodes []*site.Node) error {
	free, wants, short := p.Free, int64(0), ""
	for _, n := range nodes {
		if current, ok := h.Node(n.Name); ok && current.Runs() && p.isFor(&current.VM) {
			free += current.Limits.Memory / p.Size
		}
	}
	for _, n := range nodes {
		if n.Virtual() && p.isFor(&n.VM) {
			wants += n.Limits.Memory / p.Size
			if wants > free && short == "" {
				short = n.Name
			}
		}
	}
	if short == "" {
		return nil
	}
	return problem.New(problem.Unable,
		"node %s: no room in huge pages of %d MiB: %s has %d of %d free; %d are needed", short, p.Size>>20, p.of, free,
		p.Total, wants).
		Try("%s", p.cure(p.Total+wants-free))
}

// cure returns how the user can reserve a number of pages. The kernel can allocate the smaller ones
// while it runs.
func (p pool) cure(total int64) string {
	switch small := p.Size == 2<<20; {
	case small && p.numa == nil:
		return fmt.Sprintf("sysctl vm.nr_hugepages=%d", total)
	case small:
		return fmt.Sprintf("echo %d >/sys/devices/system/node/node%d/hugepages/hugepages-2048kB/nr_hugepages", total, *p.numa)
	case p.numa == nil:
		return fmt.Sprintf("hugepagesz=%dG hugepages=%d on the kernel's command line", p.Size>>30, total)
	}
	return fmt.Sprintf("hugepagesz=%dG hugepages=%d:%d on the kernel's command line", p.Size>>30, *p.numa, total)
}
