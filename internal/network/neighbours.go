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

// ForgetNeighbours lets a node forget those that have not answered it, once its links have been
// moved: it asks for a neighbour once a second, and what it called in vain from quarantine, its
// gateway for one, would be out of reach for that long. The node is told by the file of its network
// namespace: /proc/PID/ns/net.
func ForgetNeighbours(space string) error {
	handle, err := handleIn(space)
	if err != nil {
		return problem.New(problem.Failed, "open a node's network namespace").Because(err)
	}
	defer handle.Close()
	if err := forgetNeighbours(handle); err != nil {
		return problem.New(problem.Failed, "forget the neighbours of a node").At(space).Because(err)
	}
	return nil
}

// handleIn returns a way to speak to the kernel about a network namespace from outside it.
func handleIn(space string) (handle *netlink.Handle, err error) {
	f, err := os.Open(space)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	err = host.InNetwork(f, func() error {
		handle, err = netlink.NewHandle(unix.NETLINK_ROUTE) // a socket stays in the namespace in which it was made
		return err
	})
	return handle, err
}

func forgetNeighbours(in *netlink.Handle) error {
	all, err := ends.Whole(func() ([]netlink.Neigh, error) { return in.NeighList(0, netlink.FAMILY_ALL) })
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

// A forgetful is nodes that are to forget their neighbours at a moment when there is no time to look for them.
type forgetful []*netlink.Handle

// lookInto prepares for it, also by doing it once: what is used then has been used before. A node
// that has ended has nothing to forget.
func lookInto(spaces []string) forgetful {
	var all forgetful
	for _, space := range spaces {
		if handle, err := handleIn(space); err == nil {
			_ = forgetNeighbours(handle)
			all = append(all, handle)
		}
	}
	return all
}

// forget does it. What goes wrong with it is told by ForgetNeighbours, which follows where there is time.
func (f forgetful) forget() {
	for _, handle := range f {
		_ = forgetNeighbours(handle)
	}
}

func (f forgetful) close() {
	for _, handle := range f {
		handle.Close()
	}
}
