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

// equipped wants that a host has the hardware that a virtual machine is to have of it: what check cannot know.
func equipped(key string, n *site.Node, h *observe.Host) error {
	if h.Engines == nil { // nobody has asked
		return nil
	}
	for _, lacks := range []func() error{
		func() error { return modelled(n, h) },
		func() error { return beside(n, h) },
		func() error { return free(key, n, h) },
	} {
		if err := lacks(); err != nil {
			return err
		}
	}
	return nil
}

// hostModel is what QEMU calls the host's own processors, which only KVM can give to guests.
const hostModel = "host"

// modelled wants that the engine knows the model of a machine's processors, and can give it.
func modelled(n *site.Node, h *observe.Host) error {
	models, model := h.Engines[n.Engine].Models, n.VM.CPU
	if model == hostModel && h.Engines[n.Engine].Accel == observe.TCG {
		const what = "node %s wants the processors of host %s itself, and that runs its virtual machines in software emulation"
		return problem.New(problem.Unable, what, n.Name, h.Name).At("site.toml").
			Try(`leave vm.cpu out, or name "max"; orrery doctor says why KVM does not run there`)
	}
	if model == "" || len(models) == 0 || slices.Contains(models, model) {
		return nil
	}
	return problem.New(problem.Unable, "node %s wants processors of the model %q, which QEMU of host %s does not have",
		n.Name, model, h.Name).At("site.toml").
		Try("%s", problem.NearestOr(model, models, "`qemu-system-x86_64 -cpu help` lists them"))
}

// beside wants that there is the node of a host's memory that a machine is to be on, with the
// processors that it is pinned to.
func beside(n *site.Node, h *observe.Host) error {
	if n.VM.Numa == nil || len(h.Numa) == 0 {
		return nil
	}
	i := slices.IndexFunc(h.Numa, func(m observe.Numa) bool { return m.ID == *n.VM.Numa })
	if i < 0 {
		ids := make([]string, len(h.Numa))
		for j, m := range h.Numa {
			ids[j] = fmt.Sprint(m.ID)
		}
		return problem.New(problem.Mistake, "node %s is to be on NUMA node %d, but host %s has %s only", n.Name, *n.VM.Numa,
			h.Name, humanize.List(ids, 8)).At("site.toml").
			Try("name one that it has, or leave numa out")
	}
	if far := site.Beyond(n.Limits.Pin, h.Numa[i].Online); far != "" {
		return problem.New(problem.Mistake, "node %s is pinned to processors %s, of which %s are not on NUMA node %d",
			n.Name, n.Limits.Pin, far, *n.VM.Numa).At("site.toml").
			Try("that has %s", h.Numa[i].Online)
	}
	return nil
}

// free wants that the PCI functions of a node are there, and that nobody else has them or reaches
// the same memory by them.
func free(key string, n *site.Node, h *observe.Host) error {
	holder := fmt.Sprintf("%s/%d", key, n.FullID())
	for _, address := range n.VM.PCI {
		i := slices.IndexFunc(h.Functions, func(f observe.Function) bool { return f.Address == address })
		if i < 0 {
			return problem.New(problem.Unable, "node %s: host %s has no PCI function %s", n.Name, h.Name, address).
				At("site.toml").Try("lspci -D lists them")
		}
		f := h.Functions[i]
		switch {
		case f.Bridge:
			return problem.New(problem.Mistake, "node %s: PCI function %s of host %s is a bridge, and no device", n.Name,
				address, h.Name).At("site.toml").Try("name those behind it")
		case f.Holder != "" && f.Holder != holder:
			return problem.New(problem.Unable, "node %s: PCI function %s of host %s is lent to the node %s", n.Name, address,
				h.Name, f.Holder).Try("stop that node first")
		case f.Group == "":
			return problem.New(problem.Unable,
				"node %s: PCI function %s of host %s is behind no IOMMU, and would reach all of the host's memory", n.Name,
				address, h.Name).
				Try("turn the IOMMU on: in the firmware (VT-d, AMD-Vi), and intel_iommu=on on the kernel's command line")
		}
		if with := companions(h, f, n.VM.PCI); len(with) > 0 {
			return problem.New(problem.Unable,
				"node %s: PCI function %s of host %s is in one IOMMU group with %s, which the host uses", n.Name, address, h.Name,
				strings.Join(with, ", ")).
				Try("give the node all of them, or put the card into another slot")
		}
	}
	return nil
}

// companions are the functions in the group of another that some driver of the host has, and that
// the node does not get with it.
func companions(h *observe.Host, of observe.Function, got []string) (all []string) {
	for _, f := range h.Functions {
		if f.Group != of.Group || f.Bridge || f.Driver == "" || f.Driver == "vfio-pci" && f.Holder == of.Holder ||
			slices.Contains(got, f.Address) {
			continue
		}
		all = append(all, f.Address+" ("+f.Driver+")")
	}
	return all
}

// paged wants that a host has the large pages free that its machines are to be in, of the node of
// its memory that they are to be on before those anywhere.
func paged(h *observe.Host, nodes []*site.Node) error {
	for _, m := range h.Numa {
		for _, pages := range m.Hugepages {
			p := pool{Hugepages: pages, numa: &m.ID, of: fmt.Sprintf("NUMA node %d of host %s", m.ID, h.Name)}
			if err := p.holds(h, nodes); err != nil {
				return err
			}
		}
	}
	for _, pages := range h.Hugepages {
		if err := (pool{Hugepages: pages, of: "host " + h.Name}).holds(h, nodes); err != nil {
			return err
		}
	}
	return nil
}

// pool is large pages of one size: those of a node of a host's memory or, if numa is nil, all that it has.
type pool struct {
	observe.Hugepages
	numa *int
	of   string
}

// serves reports whether the memory of a machine has to be in these pages.
func (p pool) serves(v *site.VM) bool {
	return p.Size > 0 && v.Hugepages == p.Size && (p.numa == nil || v.Numa != nil && *v.Numa == *p.numa)
}

// holds wants that these pages are enough for machines. Those that they are in already are theirs.
func (p pool) holds(h *observe.Host, nodes []*site.Node) error {
	free, wants, short := p.Free, int64(0), ""
	for _, n := range nodes {
		if current, ok := h.Node(n.Name); ok && current.Runs() && p.serves(&current.VM) {
			free += current.Limits.Memory / p.Size
		}
	}
	for _, n := range nodes {
		if n.Virtual() && p.serves(&n.VM) {
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
		"node %s is to be in pages of %d MiB, of which %s has %d of %d free; %d are needed", short, p.Size>>20, p.of, free,
		p.Total, wants).
		Try("%s", p.cure(p.Total+wants-free))
}

// cure is how an operator sets so many pages aside. The smaller ones, the kernel finds while it runs.
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
