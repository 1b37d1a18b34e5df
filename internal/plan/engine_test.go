package plan_test

import (
	"slices"
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// virtual makes a node a virtual machine, with the defaults of a site file.
func virtual(n *site.Node) { n.Engine, n.Limits = site.KVM, site.Limits{Memory: site.DefaultVMMemory} }

// TestOtherEngine: a node that becomes a virtual machine, or a container again, is recreated, and
// the plan gives the reason. Its volume is kept.
func TestOtherEngine(t *testing.T) {
	f := newFleet("sv1")
	f.reach(t, observatory())
	s := observatory()
	virtual(&s.Nodes[0])
	p := f.up(t, s, plan.Goal{})
	wantOrder(t, p, s)
	anewAs := func(why string) []string {
		return []string{
			"node db: stop: " + why, "node db: destroy: " + why, "node db: create: new", "node db: start: new",
			"node db: configure: apply roles", "node db: check: check health",
		}
	}
	var nodes plan.Plan
	for _, step := range p.Steps {
		switch {
		case step.Kind != plan.BuildLayer:
			nodes.Steps = append(nodes.Steps, step)
		case !step.Layer.IsKernel():
			t.Errorf("%s is built, as if role layers were others", step)
		}
	}
	wantLines(t, &nodes, anewAs("engine changed from fake to kvm")...)
	f.reach(t, s)
	f.wantReached(t, s)
	volumes := f.hosts[0].Observe().Volumes
	if len(volumes) != 1 || volumes[0].Node != "db" {
		t.Errorf("the volumes are %+v", volumes)
	}
	wantLines(t, f.up(t, observatory(), plan.Goal{}), anewAs("engine changed from kvm to fake")...)
	f.reach(t, observatory())
	f.wantReached(t, observatory())
}

// TestMachineLimits: limits of a virtual machine are part of its hardware, so it must be stopped.
func TestMachineLimits(t *testing.T) {
	f := newFleet("sv1")
	s := observatory()
	virtual(&s.Nodes[3])
	f.reach(t, s)
	s = observatory()
	virtual(&s.Nodes[3])
	s.Nodes[3].Limits.Memory = 1 << 30
	const why = "memory changed; the engine kvm can limit only stopped nodes"
	wantLines(t, f.up(t, s, plan.Goal{}), "node portal: stop: "+why, "node portal: update: "+why,
		"node portal: start: after the change", "node portal: check: check health")
}

// TestUnable: if a node cannot run on its host, this is reported with a cure before anything is
// done, and only for selected nodes.
func TestUnable(t *testing.T) {
	lacks := observe.Capabilities{Unable: observe.Missing{What: "QEMU is not installed",
		Cure: "apt-get install qemu-system-x86"}}
	caps := observe.Capabilities{Keep: true}
	for _, c := range []struct {
		name    string
		edit    func(*site.Node)
		engines map[string]observe.Capabilities
		exit    problem.Kind
		want    string
	}{
		{"able", virtual, map[string]observe.Capabilities{"fake": caps, site.KVM: caps}, 0, ""},
		{"nobody asked", virtual, nil, 0, ""},
		{"no machine", func(*site.Node) {}, map[string]observe.Capabilities{"fake": caps, site.KVM: lacks}, 0, ""},
		{"no QEMU", virtual, map[string]observe.Capabilities{"fake": caps, site.KVM: lacks}, problem.Unable,
			"node portal cannot run on host sv1: QEMU is not installed (apt-get install qemu-system-x86)"},
		{"no such engine", virtual, map[string]observe.Capabilities{"fake": caps}, problem.Unable,
			`node portal needs the engine "kvm", which host sv1 does not have`},
		{"too large", func(n *site.Node) { virtual(n); n.Limits.Memory = 2 << 40 },
			map[string]observe.Capabilities{"fake": caps, site.KVM: caps}, problem.Mistake,
			"node portal is a virtual machine with 2097152 MiB of memory, but host sv1 has 1048576 MiB"},
	} {
		s := observatory()
		c.edit(&s.Nodes[3])
		hosts := []observe.Host{{Name: "sv1", Cpus: 3, Memory: 1 << 40, Engines: c.engines}}
		wantUp(t, c.name, s, hosts, plan.Goal{}, c.exit, c.want)
		wantUp(t, c.name+": another node", s, hosts, plan.Goal{Nodes: map[string]bool{"db": true}}, 0, "")
	}
}

// wantUp wants that what a goal says of a site can be brought up, or that a problem says why not.
func wantUp(t *testing.T, name string, s *site.Site, hosts []observe.Host, goal plan.Goal, exit problem.Kind,
	want string) {
	t.Helper()
	_, err := plan.Up(s, hosts, goal)
	if want == "" && err != nil || want != "" &&
		(err == nil || !strings.Contains(err.Error(), want) || problem.ExitCode(err) != int(exit)) {
		t.Errorf("%s: %v", name, err)
	}
}

// TestPooled: a Dom0 knows only its own memory, and Xen manages the memory of guests. Memory of
// running guests counts as available to them, and nodes of other engines need none of it.
func TestPooled(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name       string
		free, wish int64
		runs       bool
		want       string
	}{
		{"enough", 1024, 1024, false, ""},
		{"more than Dom0 has", 4096, 4000, false, ""},
		{"too little", 1000, 1024, false,
			"no room for node portal with 1024 MiB: of the 8192 MiB of the engine xen on host sv1, 1000 are free; 1024 are needed (lower its memory"},
		{"its own", 0, 1024, true, ""},
		{"grown", 100, 2048, true, "1124 are free; 2048 are needed"},
		{"unsaid", 400, 0, false, "no room for node portal with 512 MiB"},
	} {
		s := observatory()
		virtual(&s.Nodes[3])
		s.Nodes[3].Engine = site.Xen
		s.Nodes[3].Limits.Memory = c.wish * mib
		caps := observe.Capabilities{Keep: true, Pool: &observe.MemoryPool{Total: 8192 * mib, Free: c.free * mib}}
		h := observe.Host{Name: "sv1", Cpus: 3, Memory: 512 * mib,
			Engines: map[string]observe.Capabilities{"fake": {Keep: true}, site.Xen: caps}}
		if c.runs {
			n := observe.Node{State: observe.Running}
			n.Site, n.Name, n.Engine, n.Limits.Memory = s.Key(), s.Nodes[3].Name, site.Xen, 1024*mib
			h.Nodes = append(h.Nodes, n)
		}
		wantUp(t, c.name, s, []observe.Host{h}, plan.Goal{}, problem.Unable, c.want)
	}
}

// TestStartUnable: a start is refused if the node's engine lacks something, but the node can be
// destroyed.
func TestStartUnable(t *testing.T) {
	f := newFleet("sv1")
	s := observatory()
	virtual(&s.Nodes[3])
	f.reach(t, s)
	only := plan.Goal{Nodes: map[string]bool{"portal": true}}
	f.run(plan.Stop(s, f.observe(), only), 1)
	hosts := f.observe()
	hosts[0].Engines[site.KVM] = observe.Capabilities{Unable: observe.Missing{What: "QEMU is not installed",
		Cure: "apt-get install qemu-system-x86"}}
	if _, err := plan.Start(s, hosts, only); problem.ExitCode(err) != int(problem.Unable) ||
		!strings.Contains(err.Error(), "node portal cannot run on host sv1: QEMU is not installed") {
		t.Error(err)
	}
	if p := plan.Down(s, hosts, plan.Goal{}); p.Empty() {
		t.Error("it cannot be taken down")
	}
}

// TestEmulated: a plan warns once for each host with emulated virtual machines, even if there is
// nothing to do.
func TestEmulated(t *testing.T) {
	f := newFleet("sv1")
	s := observatory()
	if p := f.up(t, s, plan.Goal{}); len(p.Warnings) > 0 {
		t.Errorf("warned of containers: %q", p.Warnings)
	}
	virtual(&s.Nodes[1])
	virtual(&s.Nodes[3])
	f.reach(t, s)
	const want = "on host sv1 virtual machines run in software emulation, many times slower than containers: receptor1, portal; `orrery doctor` shows why"
	if p := f.up(t, s, plan.Goal{}); !p.Empty() || len(p.Warnings) != 1 || p.Warnings[0] != want {
		t.Errorf("warned is %q", p.Warnings)
	}
}

// TestKernelBesideRoles: the kernel's layer is directly above the base, like the first role layer.
// A machine waits for both, and a container does not wait for a kernel.
func TestKernelBesideRoles(t *testing.T) {
	f := newFleet("sv1")
	s := observatory()
	virtual(&s.Nodes[0])
	p, err := plan.Up(s, f.observe(), plan.Goal{})
	if err != nil {
		t.Fatal(err)
	}
	base, kernel := -1, -1
	for _, step := range p.Steps {
		switch {
		case step.Kind != plan.BuildLayer:
		case step.Layer.IsBase():
			base = step.N
		case step.Layer.IsKernel() && kernel < 0:
			kernel = step.N
			if !slices.Equal(step.Needs, []int{base}) {
				t.Errorf("the kernel's layer waits for %v and not for %d", step.Needs, base)
			}
		case step.Layer.IsKernel():
			t.Error("the kernel's layer is built twice")
		case slices.Contains(step.Needs, kernel) || len(step.Needs) != 1:
			t.Errorf("%s waits for %v", step.Subject, step.Needs)
		}
	}
	for _, step := range p.Steps {
		if step.Kind == plan.CreateNode && slices.Contains(step.Needs, kernel) != (step.Subject == "db") {
			t.Errorf("%s waits for %v, and the kernel is built by %d", step.Subject, step.Needs, kernel)
		}
	}
	if base < 0 || kernel < 0 {
		t.Errorf("base and kernel are built by %d and %d", base, kernel)
	}
}

// TestPlug: a disk is added to a running machine if its engine can do that. Changes that it cannot
// do, such as another cache mode, stop the machine.
func TestPlug(t *testing.T) {
	f := newFleet("sv1")
	s := observatory()
	virtual(&s.Nodes[3])
	f.reach(t, s)
	s.Nodes[3].VM.Disks = []site.Drive{{Name: "data", Disk: site.RawFile, Size: 1 << 30}}
	hosts := f.observe()
	can := hosts[0].Engines[site.KVM]
	can.PlugDisk = true
	hosts[0].Engines[site.KVM] = can
	p, err := plan.Up(s, hosts, plan.Goal{})
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, p, "node portal: update: plugs disk data", "node portal: check: check health")
	s.Nodes[3].VM.CPU = "max"
	if p, err = plan.Up(s, hosts, plan.Goal{}); err != nil {
		t.Fatal(err)
	}
	const why = "virtual hardware changed"
	wantLines(t, p, "node portal: stop: "+why, "node portal: update: "+why, "node portal: start: after the change",
		"node portal: check: check health")
}
