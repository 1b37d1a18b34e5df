package local

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
)

// disksTimeout is how long the file systems of a host may take to report their sizes. The directory of a
// volume may be on a server that is away.
const disksTimeout = time.Second

// variables, so that tests can change them
var (
	statfs    = unix.Statfs
	readGroup = host.ReadSample
)

// addShortages adds to nodes what they have little left of. It leaves out what cannot be read.
func (h nodeHost) addShortages(ctx context.Context, nodes []observe.Node) {
	if len(nodes) == 0 {
		return
	}
	ctx, stop := context.WithTimeout(ctx, disksTimeout)
	defer stop()
	states, known := readDisk(ctx, h.Dirs.State)
	for i := range nodes {
		n := &nodes[i]
		add := func(s observe.Shortage) {
			if s.Short() {
				n.Shortages = append(n.Shortages, s)
			}
		}
		if known {
			add(states.shortage(observe.ShortDisk, ""))
		}
		add(h.memory(n))
		for _, m := range n.Mounts {
			if m.Copy == spec.NoCopy || m.Address() != "" { // the host does not have it
				continue
			}
			if d, ok := readDisk(ctx, volume.Path(h.Dirs, n.Site, n.Name, m)); ok && (!known || !d.same(states)) {
				add(d.shortage(observe.ShortVolume, m.Volume))
			}
		}
	}
}

// memory returns how much of its memory a node uses. For a virtual machine it is unknown, because the kernel
// of the guest uses all memory that is free.
func (h nodeHost) memory(n *observe.Node) observe.Shortage {
	e := h.Engines[n.Engine]
	g, ok := e.(engine.CgroupProvider)
	if !ok || !n.Runs() || n.Limits.Memory <= 0 || !e.Capabilities().Containers {
		return observe.Shortage{}
	}
	used := readGroup(g.Cgroup(engine.RefOf(&n.Node))).Memory
	return observe.Shortage{Of: observe.ShortMemory, Used: used, Size: n.Limits.Memory}
}

// A diskState is the state of a file system.
type diskState struct {
	used, size int64 // without what is reserved for root
	kind       int64
	id         unix.Fsid
}

// same reports whether two states are of one file system. Each subvolume of btrfs has an id of its own.
func (d diskState) same(other diskState) bool {
	return d.id == other.id || d.kind == unix.BTRFS_SUPER_MAGIC && d.kind == other.kind && d.size == other.size
}

func (d diskState) shortage(of, volume string) observe.Shortage {
	return observe.Shortage{Of: of, Volume: volume, Used: d.used, Size: d.size}
}

// readDisk returns the state of the file system of a directory, or false if it does not answer before ctx ends.
func readDisk(ctx context.Context, dir string) (diskState, bool) {
	stat, read := statfs, make(chan diskState, 1)
	go func() { // it may never end
		defer close(read)
		var s unix.Statfs_t
		if stat(dir, &s) == nil && s.Blocks > 0 {
			used := int64(s.Blocks-s.Bfree) * s.Bsize
			read <- diskState{used, used + int64(s.Bavail)*s.Bsize, s.Type, s.Fsid}
		}
	}()
	select {
	case d, ok := <-read:
		return d, ok
	case <-ctx.Done():
		return diskState{}, false
	}
}
