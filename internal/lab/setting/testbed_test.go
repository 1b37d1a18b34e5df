package setting

import (
	"reflect"
	"slices"
	"testing"

	"orrery/internal/lab/experiment"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
)

// TestMachines: a setting with a virtual machine gets one on the bridge of the host and the far
// end, with the network card of the setting.
func TestMachines(t *testing.T) {
	e := &experiment.Experiment{Name: "x", Suite: "bookworm", Components: []string{"main", "non-free"},
		Packages: []string{"iozone3"}, Settings: []experiment.Setting{
			{Name: "veth", Engine: site.LXC, Network: experiment.Veth, Limits: site.Limits{Pids: 100}},
			{Name: "virtio", Engine: site.KVM, Network: site.Virtio, Limits: site.Limits{Memory: site.DefaultVMMemory, Cpus: 2},
				Emulated: true},
			{Name: "e1000", Engine: site.KVM, Network: site.E1000, CPU: "qemu64", Limits: site.Limits{Memory: 1 << 30}},
			{Name: "file", Engine: site.KVM, Network: site.Virtio, Limits: site.Limits{Memory: 1 << 30}, Disk: experiment.File,
				Cache: "none", AIO: "native"},
			{Name: "part", Engine: site.KVM, Network: site.Virtio, Limits: site.Limits{Memory: 1 << 30},
				Disk: experiment.Partition, Devices: []string{"/dev/vg/a"}},
			{Name: "gone", Engine: site.KVM, Network: site.Virtio, Missing: "no QEMU"},
		}}
	dir := t.TempDir()
	if err := New(e, "/srv/work", []string{"198.18.0", "198.18.1", "198.18.2", "198.18.3", "198.18.4", "198.18.5",
		"198.18.6"}).Write(dir); err != nil {
		t.Fatal(err)
	}
	s, err := sitefile.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if i := s.Images[0]; !slices.Equal(i.Components, e.Components) || !slices.Equal(i.Packages, e.Packages) {
		t.Errorf("the image is %+v", i)
	}
	want := map[string]site.Node{
		FarEnd:   {Engine: site.LXC, Limits: site.Limits{Pids: site.DefaultPids}},
		"s-veth": {Engine: site.LXC, Limits: site.Limits{Pids: 100}},
		"s-virtio": {Engine: site.KVM, Limits: site.Limits{Memory: site.DefaultVMMemory, Cpus: 2},
			VM: site.VM{Model: site.Virtio}},
		"s-e1000": {Engine: site.KVM, Limits: site.Limits{Memory: 1 << 30}, VM: site.VM{Model: site.E1000, CPU: "qemu64"}},
		"s-file": {Engine: site.KVM, Limits: site.Limits{Memory: 1 << 30}, VM: site.VM{
			Model: site.Virtio, Disk: site.RawFile, Size: diskHeadroomBytes,
			DiskSettings: site.DiskSettings{Cache: "none", AIO: "native"},
		}},
		"s-part": {Engine: site.KVM, Limits: site.Limits{Memory: 1 << 30},
			VM: site.VM{Model: site.Virtio, Disk: "/dev/vg/a"}},
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		w, known := want[n.Name]
		if delete(want, n.Name); !known || n.Engine != w.Engine || n.Limits != w.Limits && n.Name != FarEnd ||
			!reflect.DeepEqual(n.VM, w.VM) || len(n.NICs) != 1 || n.NICs[0].Network != lan {
			t.Errorf("%+v, not %+v", n, w)
		}
	}
	if len(want) > 0 {
		t.Errorf("there is no %v", want)
	}
	for i, about := range []string{"container, veth on a bridge",
		"virtual machine, emulated, virtio on a bridge, 2 cpus, 512 MiB",
		"virtual machine, processors qemu64, e1000 on a bridge, 1024 MiB",
		"virtual machine, disk in a raw file, cache none, aio native, virtio on a bridge, 1024 MiB",
		"virtual machine, disk on a partition, virtio on a bridge, 1024 MiB"} {
		if got := Describe(e.Settings[i]); got != about {
			t.Errorf("%s is told as %q", e.Settings[i].Name, got)
		}
	}
}
