package plan_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// TestEquipped: hardware that a host lacks or has no more of is reported before anything is done,
// with numbers and a cure.
func TestEquipped(t *testing.T) {
	with := func(edit func(*site.Node)) func(*site.Node) {
		return func(n *site.Node) { virtual(n); edit(n) }
	}
	lends := func(addresses ...string) func(*site.Node) { return with(func(n *site.Node) { n.VM.PCI = addresses }) }
	memory := func(id int, pin string) func(*site.Node) {
		return with(func(n *site.Node) { n.VM.Numa, n.Limits.Pin = &id, pin })
	}
	pagesOf := func(id int) func(*site.Node) {
		return with(func(n *site.Node) { n.VM.Numa, n.VM.Hugepages, n.Limits.Memory = &id, 1<<30, 1<<30 })
	}
	pages := func(size int64) func(*site.Node) { return with(func(n *site.Node) { n.VM.Hugepages = size }) }
	for _, c := range []struct {
		name string
		edit func(*site.Node)
		exit problem.Kind
		want string
	}{
		{"a model", with(func(n *site.Node) { n.VM.CPU = "Nehalem" }), 0, ""},
		{"no such model", with(func(n *site.Node) { n.VM.CPU = "Nehalen" }), problem.Unable,
			`processor model "Nehalen", which QEMU on host sv1 does not support (did you mean "Nehalem"?)`},
		{"its own model", with(func(n *site.Node) { n.VM.CPU = "host" }), 0, ""},
		{"its own model, emulated", with(func(n *site.Node) { n.VM.CPU = "host" }), problem.Unable,
			`node portal needs the processor model of host sv1, which runs its virtual machines in software emulation (remove vm.cpu, or write "max"`},
		{"nothing like it", with(func(n *site.Node) { n.VM.CPU = "pentium" }), problem.Unable,
			"`qemu-system-x86_64 -cpu help` lists them"},

		{"large pages", pages(1 << 30), 0, ""},
		{"too few", pages(2 << 20), problem.Unable,
			"node portal: no room in huge pages of 2 MiB: host sv1 has 3 of 512 free; 256 are needed (sysctl vm.nr_hugepages=765)"},

		{"large pages beside", pagesOf(1), 0, ""},
		{"too few beside", pagesOf(0), problem.Unable,
			"no room in huge pages of 1024 MiB: NUMA node 0 of host sv1 has 0 of 2 free; 1 are needed (hugepagesz=1G hugepages=0:3 on the kernel's command line)"},

		{"memory beside", memory(1, ""), 0, ""},
		{"pinned beside", memory(1, "2"), 0, ""},
		{"pinned elsewhere", memory(1, "1-2"), problem.Mistake,
			"pinned to processors 1-2, of which 1 are not on NUMA node 1 (that NUMA node has 2)"},
		{"no such memory", memory(2, ""), problem.Mistake, "is declared on NUMA node 2, but host sv1 has only 0, 1"},

		{"a function", lends("0000:03:00.0"), 0, ""},
		{"a whole group", lends("0000:04:00.0", "0000:04:00.1"), 0, ""},
		{"half a group", lends("0000:04:00.0"), problem.Unable,
			"PCI function 0000:04:00.0 of host sv1 shares its IOMMU group with 0000:04:00.1 (nvme), which the host uses"},
		{"no such function", lends("0000:09:00.0"), problem.Unable,
			"host sv1 has no PCI function 0000:09:00.0 (lspci -D lists them)"},
		{"a bridge", lends("0000:00:1c.0"), problem.Mistake, "is a bridge"},
		{"no IOMMU", lends("0000:05:00.0"), problem.Unable,
			"has no IOMMU and could access all of the host's memory (enable the IOMMU"},
		{"another's", lends("0000:06:00.0"), problem.Unable, "is used by node other/7 (stop that node first)"},
		{"its own", lends("0000:07:00.0"), 0, ""},
	} {
		s := observatory()
		c.edit(&s.Nodes[3])
		capabilities := observe.Capabilities{Keep: true, Accel: observe.KVM,
			Models: []string{"486", "Nehalem", "host", "max"}}
		if c.name == "its own model, emulated" {
			capabilities.Accel = observe.TCG
		}
		hosts := []observe.Host{{
			Name: "sv1", Cpus: 3, Online: "0-2", Memory: 1 << 40,
			Engines:   map[string]observe.Capabilities{"fake": {Keep: true}, site.KVM: capabilities},
			Hugepages: []observe.Hugepages{{Size: 2 << 20, Total: 512, Free: 3}, {Size: 1 << 30, Total: 4, Free: 4}},
			Numa: []observe.Numa{
				{ID: 0, Online: "0-1", Hugepages: []observe.Hugepages{{Size: 1 << 30, Total: 2}}},
				{ID: 1, Online: "2", Hugepages: []observe.Hugepages{{Size: 1 << 30, Total: 2, Free: 2}}},
			},
			Functions: []observe.PCIFunction{
				{Address: "0000:00:1c.0", Bridge: true, Driver: "pcieport", Group: "1"},
				{Address: "0000:03:00.0", Driver: "e1000e", Group: "1"},
				{Address: "0000:04:00.0", Driver: "igb", Group: "2"}, {Address: "0000:04:00.1", Driver: "nvme", Group: "2"},
				{Address: "0000:04:00.2", Group: "2"},
				{Address: "0000:05:00.0", Driver: "igb"},
				{Address: "0000:06:00.0", Driver: "vfio-pci", Group: "3", Holder: "other/7"},
				{Address: "0000:07:00.0", Driver: "vfio-pci", Group: "4", Holder: "karoo/11"},
			},
		}}
		if c.name == "its own" {
			hosts[0].Functions[7].Holder = s.Key() + "/" + strconv.Itoa(s.Nodes[3].FullID())
		}
		wantUp(t, c.name, s, hosts, plan.Goal{}, c.exit, c.want)
		wantUp(t, c.name+": another node", s, hosts, plan.Goal{Nodes: map[string]bool{"db": true}}, 0, "")
	}
}

// TestPagesOfItsOwn: pages that a running machine uses count as available to it.
func TestPagesOfItsOwn(t *testing.T) {
	f := newFleet("sv1")
	s := observatory()
	virtual(&s.Nodes[3])
	f.reach(t, s)
	s.Nodes[3].VM.Hugepages = 2 << 20
	hosts := f.observe()
	node, _ := hosts[0].Node("portal")
	node.VM.Hugepages = 2 << 20
	hosts[0].Hugepages = []observe.Hugepages{{Size: 2 << 20, Total: 256}}
	if p, err := plan.Up(s, hosts, plan.Goal{}); err != nil || !p.Empty() {
		t.Errorf("%v", err)
	}
}

// TestPagesOfNoSize: a host that reports pages of size 0 has none, and no division by the size
// occurs.
func TestPagesOfNoSize(t *testing.T) {
	f := newFleet("sv1")
	s := observatory()
	virtual(&s.Nodes[3])
	hosts := f.observe()
	hosts[0].Hugepages = []observe.Hugepages{{Total: 256}, {Size: -1, Total: 256}}
	if _, err := plan.Up(s, hosts, plan.Goal{}); err != nil {
		t.Errorf("%v", err)
	}
}

// TestPagesElsewhere: pages that a machine uses on one NUMA node do not help it on another.
func TestPagesElsewhere(t *testing.T) {
	f := newFleet("sv1")
	s := observatory()
	virtual(&s.Nodes[3])
	f.reach(t, s)
	here, other := 0, 1
	s.Nodes[3].VM.Hugepages, s.Nodes[3].VM.Numa = 2<<20, &other
	hosts := f.observe()
	node, _ := hosts[0].Node("portal")
	node.VM.Hugepages, node.VM.Numa = 2<<20, &here
	all := []observe.Hugepages{{Size: 2 << 20, Total: 256}}
	none := []observe.Hugepages{{Size: 2 << 20}}
	hosts[0].Hugepages, hosts[0].Numa = all,
		[]observe.Numa{{ID: 0, Online: "0", Hugepages: all}, {ID: 1, Online: "1", Hugepages: none}}
	const want = "no room in huge pages of 2 MiB: NUMA node 1 of host sv1 has 0 of 0 free; 256 are needed (echo 256 >/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages)"
	if _, err := plan.Up(s, hosts, plan.Goal{}); problem.ExitCode(err) != int(problem.Unable) ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
}

// TestOtherDevices: a change of hardware needs the machine stopped. Drivers for a PCI function of
// the host are in another kernel, so the node is recreated.
func TestOtherDevices(t *testing.T) {
	f := newFleet("sv1")
	s := observatory()
	virtual(&s.Nodes[3])
	f.reach(t, s)
	s.Nodes[3].VM.Queues = 4
	const why = "virtual hardware changed"
	wantLines(t, f.up(t, s, plan.Goal{}), "node portal: stop: "+why, "node portal: update: "+why,
		"node portal: start: after the change", "node portal: check: check health")
}

// TestCrowded: a plan warns of machines with more processors than their host.
func TestCrowded(t *testing.T) {
	s := observatory()
	virtual(&s.Nodes[1])
	virtual(&s.Nodes[3])
	s.Nodes[1].Limits.Cpus, s.Nodes[3].Limits.Cpus = 3, 3.5
	p, err := plan.Up(s, []observe.Host{{Name: "sv1", Cpus: 3, Memory: 1 << 40}}, plan.Goal{})
	if err != nil {
		t.Fatal(err)
	}
	const want = "virtual machines have more processors than host sv1, which has 3: portal (4)"
	if len(p.Warnings) != 1 || p.Warnings[0] != want {
		t.Errorf("warned is %q", p.Warnings)
	}
}

// TestDataShutsDown: a machine whose data outlives it shuts down in order before it is removed. A
// machine with disks also does before it is replaced, since undo restores them.
func TestDataShutsDown(t *testing.T) {
	drive := func(disk string) func(*site.VM) {
		return func(vm *site.VM) { vm.Disks = []site.Drive{{Name: "data", Disk: disk}} }
	}
	for _, c := range []struct {
		name             string
		edit             func(*site.VM)
		removed, replace string
	}{
		{"nothing", func(*site.VM) {}, "", "kill"},
		{"a disk on a device", drive("/dev/vg/lv"), "stop", "stop"},
		{"a function of the PCI bus", func(vm *site.VM) { vm.PCI = []string{"0000:03:00.0"} }, "stop", "stop"},
		{"a disk in a file", drive(site.RawFile), "", "stop"},
		{"its root on a device", func(vm *site.VM) { vm.Disk = "/dev/vg/lv" }, "", "stop"},
	} {
		f := newFleet("sv1")
		s := observatory()
		virtual(&s.Nodes[3])
		f.reach(t, s)
		hosts := f.observe()
		hosts[0].Functions = []observe.PCIFunction{{Address: "0000:03:00.0", Driver: "e1000e", Group: "1"}}
		node, _ := hosts[0].Node("portal")
		c.edit(&node.VM)
		c.edit(&s.Nodes[3].VM)
		only := plan.Goal{Nodes: map[string]bool{"portal": true}}
		down := []string{"node portal: destroy: requested"}
		if c.removed != "" {
			down = append([]string{"node portal: " + c.removed + ": requested"}, down...)
		}
		t.Run(c.name, func(t *testing.T) {
			wantLines(t, plan.Down(s, hosts, only), down...)
			node.Base = "former"
			p, err := plan.Up(s, hosts, only)
			if err != nil {
				t.Fatal(err)
			}
			if want := "node portal: " + c.replace + ": base image changed"; !slices.Contains(lines(p), want) {
				t.Errorf("%q is not planned, but %q", want, lines(p))
			}
		})
	}
}

// TestSmallerDisk: a disk that would become smaller than in its node's record is refused before
// anything is done, unless the node's disks are recreated.
func TestSmallerDisk(t *testing.T) {
	portal := func(s *site.Site) *site.Node { return &s.Nodes[3] }
	withDisks := func() *site.Site {
		s := observatory()
		portal(s).VM = site.VM{Disk: site.QCow2, Size: 2 << 30,
			Disks: []site.Drive{{Name: "data", Disk: site.RawFile, Size: 1 << 30}}}
		return s
	}
	f := newFleet("sv1")
	f.reach(t, withDisks())
	for name, c := range map[string]struct {
		edit func(s *site.Site)
		want string
	}{
		"its root": {func(s *site.Site) { portal(s).VM.Size = 1536 << 20 },
			`disk orrery-root cannot shrink from 2GiB to 1536MiB .*write size = "2GiB" or more`},
		"another": {func(s *site.Site) { portal(s).VM.Disks[0].Size = 1 << 20 },
			`disk data cannot shrink from 1GiB to 1MiB`},
		"larger":            {func(s *site.Site) { portal(s).VM.Size = 3 << 30 }, ""},
		"gone":              {func(s *site.Site) { portal(s).VM.Disks = nil }, ""},
		"a device now":      {func(s *site.Site) { portal(s).VM.Disks[0] = site.Drive{Name: "data", Disk: "/dev/sdz"} }, ""},
		"with its root new": {func(s *site.Site) { portal(s).VM.Size, s.Images[0].Packages = 1<<30, []string{"vim"} }, ""},
	} {
		wanted := withDisks()
		c.edit(wanted)
		_, err := plan.Up(wanted, f.observe(), plan.Goal{})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (problem.ExitCode(err) != int(problem.Mistake) ||
			!regexp.MustCompile(c.want).MatchString(err.Error())):
			t.Errorf("%s: %v", name, err)
		}
	}
}
