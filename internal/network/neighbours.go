package network

import (
	"errors"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/network/ends"
	"orrery/internal/problem"
)

// FlushNeighbours makes a node forget the neighbours that have not answered it, after its links
// have been moved. A node asks for a neighbour once a second. Addresses that it asked for in vain
// in quarantine, such as its gateway, would stay unreachable for that time. space is the file of
// the node's network namespace, /proc/PID/ns/net.
func FlushNeighbours(space string) error {
	handle, err := handleIn(space)
	if err != nil {
		return problem.New(problem.Failed, "open a node's network namespace").Because(err)
	}
	defer handle.Close()
	if err := flushNeighbours(handle); err != nil {
		return problem.New(problem.Failed, "flush the neighbours of a node").At(space).Because(err)
	}
	return nil
}

// handleIn returns a netlink handle for a network namespace, used from outside of it.
func handleIn(space string) (handle *netlink.Handle, err error) {
	f, err := os.Open(space)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	err = host.InNetNS(f, func() error {
		handle, err = netlink.NewHandle(unix.NETLINK_ROUTE) // the socket stays in the namespace in which it was made
		return err
	})
	return handle, err
}

func flushNeighbours(in *netlink.Handle) error {
	all, err := ends.ListConsistent(func() ([]netlink.Neigh, error) { return in.NeighList(0, netlink.FAMILY_ALL) })
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].State&(netlink.NUD_INCOMPLETE|netlink.NUD_FAILED) == 0 {
			continue
		}
		if err := in.NeighDel(&all[i]); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}

// A neighbourFlusher is a set of nodes that must forget their neighbours later, when there is no time to
// open their namespaces.
type neighbourFlusher []*netlink.Handle

// openFlusher opens the nodes' namespaces and makes them forget once already, so that the later call
// finds everything in caches. Nodes that have ended are left out.
func openFlusher(spaces []string) neighbourFlusher {
	var all neighbourFlusher
	for _, space := range spaces {
		if handle, err := handleIn(space); err == nil {
			_ = flushNeighbours(handle)
			all = append(all, handle)
		}
	}
	return all
}

// flush makes the nodes forget their neighbours. It ignores errors, since FlushNeighbours is
// called later and reports them.
func (f neighbourFlusher) flush() {
	for _, handle := range f {
		_ = flushNeighbours(handle)
	}
}

func (f neighbourFlusher) close() {
	for _, handle := range f {
		handle.Close()
	}
}
