package argv

import (
	"slices"
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/site"
)

// TestDevices: the options for the host's hardware that a machine uses.
func TestDevices(t *testing.T) {
	no, yes, one := false, true, 1
	for name, c := range map[string]struct {
		vm    site.VM
		vhost bool
		pci   []string
		want  []string // options with their values; a text that begins with "!" must not occur
	}{
		"queues": {site.VM{Queues: 2}, false, nil, []string{
			"-netdev tap,id=card-lan,fds=15:16",
			"-device virtio-net-pci,id=card-lan,netdev=card-lan,mac=02:00:00:00:00:01,romfile=,bus=slot0,mq=on,vectors=6",
			"-netdev tap,id=card-fast,fds=17:18",
		}},
		"one queue": {site.VM{Queues: 1}, false, nil,
			[]string{"-netdev tap,id=card-lan,fd=15", "-netdev tap,id=card-fast,fd=16", "!mq=on", "!vhost=on"}},
		"vhost": {site.VM{}, true, nil, []string{"-netdev tap,id=card-lan,fd=15,vhost=on,vhostfd=16",
			"-netdev tap,id=card-fast,fd=17,vhost=on,vhostfd=18"}},
		"vhost, asked": {site.VM{VHost: &yes, Queues: 2}, true, nil,
			[]string{"-netdev tap,id=card-lan,fds=15:16,vhost=on,vhostfds=17:18"}},
		"no vhost": {site.VM{VHost: &no}, true, nil, []string{"-netdev tap,id=card-lan,fd=15", "!vhost=on"}},
		"e1000":    {site.VM{Model: site.E1000}, true, nil, []string{"-netdev tap,id=card-lan,fd=15", "!vhost=on"}},
		"hugepages": {site.VM{Hugepages: 2 << 20}, false, nil,
			[]string{"-object memory-backend-memfd,id=memory,share=on,size=262144K,hugetlb=on,hugetlbsize=2M,prealloc=on"}},
		"1 GiB": {site.VM{Hugepages: 1 << 30}, false, nil,
			[]string{"-object memory-backend-memfd,id=memory,share=on,size=262144K,hugetlb=on,hugetlbsize=1024M,prealloc=on"}},
		"numa": {site.VM{Numa: &one}, false, nil,
			[]string{"-object memory-backend-memfd,id=memory,share=on,size=262144K,host-nodes=1,policy=bind"}},
		"pci": {site.VM{PCI: []string{"0000:03:00.0"}}, false,
			[]string{"/sys/devices/pci0000:00/0000:00:1c.0/0000:03:00.0", "/sys/devices/pci0000:00/0000:00:05.0"}, []string{
				"-device vfio-pci,id=pci0,sysfsdev=/sys/devices/pci0000:00/0000:00:1c.0/0000:03:00.0,rombar=0",
				"-device vfio-pci,id=pci1,sysfsdev=/sys/devices/pci0000:00/0000:00:05.0,rombar=0",
			}},
		"balloon": {site.VM{}, false, nil, []string{"-device virtio-balloon-pci,free-page-reporting=on"}},
	} {
		n := someNode()
		n.VM = c.vm
		args, files, err := (&Machine{Node: n, Boot: someBoot, Accel: observe.KVM, VHost: c.vhost, PCI: c.pci}).CommandLine()
		if err != nil {
			t.Fatal(err)
		}
		line := "\n" + strings.Join(args, "\n") + "\n"
		for _, want := range c.want {
			if never, ok := strings.CutPrefix(want, "!"); ok {
				if strings.Contains(line, never) {
					t.Errorf("%s: %s is in the line", name, never)
				}
			} else if option, value, _ := strings.Cut(want, " "); !strings.Contains(line, "\n"+option+"\n"+value+"\n") {
				t.Errorf("%s: %s is not in %q", name, want, args)
			}
		}
		if sorted := slices.Sorted(slices.Values(files.Names())); len(slices.Compact(sorted)) != len(files.Names()) {
			t.Errorf("%s: a file is taken twice: %v", name, files.Names())
		}
	}
}
