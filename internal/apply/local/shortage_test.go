package local

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/host/filesystem"
	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A groupEngine has nodes in control groups. Its nodes may be virtual machines.
type groupEngine struct {
	engine.Engine
	containers bool
}

func (groupEngine) Cgroup(engine.Ref) string { return "node" }
func (e groupEngine) Capabilities() observe.Capabilities {
	return observe.Capabilities{Containers: e.containers}
}

// fakeDisk returns the usage of a file system with a size of 1000 blocks.
func fakeDisk(kind int64, id int32, used uint64) filesystem.Usage {
	return filesystem.Of(&unix.Statfs_t{Type: kind, Bsize: 1 << 20, Blocks: 1000, Bfree: 1000 - used, Bavail: 1000 - used,
		Fsid: unix.Fsid{Val: [2]int32{id}}})
}

// setDisks sets the file systems of directories, by a part of their paths.
func setDisks(t *testing.T, disks map[string]filesystem.Usage) {
	t.Helper()
	before := readDisk
	t.Cleanup(func() { readDisk = before })
	readDisk = func(_ context.Context, dir string) (filesystem.Usage, bool) {
		for part, disk := range disks {
			if strings.Contains(dir, part) {
				return disk, disk.Size() > 0
			}
		}
		return filesystem.Usage{}, false
	}
}

// TestShortages: nodes report the disk with the state of their host, their memory, and the volumes that are on
// a file system of their own, once little is left. Nothing is asked of servers.
func TestShortages(t *testing.T) {
	before := readGroup
	t.Cleanup(func() { readGroup = before })
	readGroup = func(string) host.Sample { return host.Sample{Memory: 95} }
	h := nodeHost{&SiteState{Dirs: host.Dirs{State: "/state"}, Engines: map[string]engine.Engine{
		"lxc": groupEngine{containers: true}, "kvm": groupEngine{}}}}
	mounts := []spec.Mount{{Volume: "data", Source: "/srv/data"}, {Volume: "kept"}, {Volume: "gone", Source: "/gone"},
		{Volume: "nas", Remote: site.Remote{NFS: "nas:/state"}}, {Volume: "none", Source: "/srv/data", Copy: spec.NoCopy}}
	node := func(engine string, state observe.State, memory int64) observe.Node {
		n := observe.Node{State: state}
		n.Site, n.Name, n.Engine, n.Limits.Memory = "karoo", "web", engine, memory
		return n
	}
	with := func(n observe.Node) observe.Node { n.Mounts = mounts; return n }
	const ext4, btrfs = unix.EXT4_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC
	memory := observe.Shortage{Of: "memory", Used: 95, Size: 100}
	disk := observe.Shortage{Of: "disk", Used: 900 << 20, Size: 1000 << 20}
	data := observe.Shortage{Of: "volume", Volume: "data", Used: 990 << 20, Size: 1000 << 20}
	for what, c := range map[string]struct {
		state, data filesystem.Usage
		node        observe.Node
		want        []observe.Shortage
	}{
		"enough": {fakeDisk(ext4, 1, 899), fakeDisk(ext4, 2, 0), with(node("lxc", observe.Running, 200)), nil},
		"all": {fakeDisk(ext4, 1, 900), fakeDisk(ext4, 2, 990), with(node("lxc", observe.Running, 100)),
			[]observe.Shortage{disk, memory, data}},
		"same disk": {fakeDisk(ext4, 1, 900), fakeDisk(ext4, 1, 990), with(node("lxc", observe.Stopped, 100)),
			[]observe.Shortage{disk}},
		"subvolume": {fakeDisk(btrfs, 1, 900), fakeDisk(btrfs, 2, 990), with(node("lxc", observe.Stopped, 0)),
			[]observe.Shortage{disk}},
		"machine":  {fakeDisk(ext4, 1, 0), fakeDisk(ext4, 2, 0), node("kvm", observe.Running, 100), nil},
		"no limit": {fakeDisk(ext4, 1, 0), fakeDisk(ext4, 2, 0), node("lxc", observe.Running, 0), nil},
		"stranger": {fakeDisk(ext4, 1, 0), fakeDisk(ext4, 2, 0), node("strange", observe.Running, 100), nil},
		"unlimited": {filesystem.Usage{}, fakeDisk(ext4, 2, 990), with(node("lxc", observe.Stopped, 0)),
			[]observe.Shortage{data}},
	} {
		setDisks(t, map[string]filesystem.Usage{"/state": c.state, "/srv/data": c.data})
		nodes := []observe.Node{c.node}
		h.addShortages(t.Context(), nodes)
		if !reflect.DeepEqual(nodes[0].Shortages, c.want) {
			t.Errorf("%s: %+v", what, nodes[0].Shortages)
		}
	}
}
