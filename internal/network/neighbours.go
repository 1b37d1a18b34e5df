package network

import (
	"errors"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// ForgetNeighbours lets a node forget those that have not answered it, once its links have been moved: it asks for a neighbour once
// a second, and what it called in vain from quarantine, its gateway for one, would be out of reach for that long. The node is told by
// the file of its network namespace: /proc/PID/ns/net.
func ForgetNeighbours(space string) error {
	f, err := os.Open(space)
	if err != nil {
		return problem.New(problem.Failed, "open a node's network namespace").Because(err)
	}
	defer f.Close()
	if err := inside(f, forgetNeighbours); err != nil {
		return problem.New(problem.Failed, "forget the neighbours of a node").At(space).Because(err)
	}
	return nil
}

func forgetNeighbours() error {
	all, err := whole(func() ([]netlink.Neigh, error) { return netlink.NeighList(0, netlink.FAMILY_ALL) })
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].State&(netlink.NUD_INCOMPLETE|netlink.NUD_FAILED) == 0 {
			continue
		}
		if err := netlink.NeighDel(&all[i]); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}
