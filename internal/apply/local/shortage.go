package local

import (
	"context"
	"time"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/host/filesystem"
	"orrery/internal/observe"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
)

// disksTimeout is how long the file systems of a host may take to report their sizes. The directory of a
// volume may be on a server that is away.
const disksTimeout = time.Second

// variables, so that tests can change them
var (
	readDisk  = filesystem.Read
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
			add(shortageOf(states, observe.ShortDisk, ""))
		}
		add(h.memory(n))
		for _, m := range n.Mounts {
			if m.Copy == spec.NoCopy || m.Address() != "" { // the host does not have it
				continue
			}
			if d, ok := readDisk(ctx, volume.Path(h.Dirs, n.Site, n.Name, m)); ok && (!known || !d.Same(states)) {
				add(shortageOf(d, observe.ShortVolume, m.Volume))
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

func shortageOf(d filesystem.Usage, of, volume string) observe.Shortage {
	return observe.Shortage{Of: of, Volume: volume, Used: d.Used, Size: d.Size()}
}
