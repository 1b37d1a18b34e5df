package ends

import (
	"errors"
	"net"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Own reports whether an interface of the host is Orrery's own, for one of its networks: site has
// how they are called.
func Own(name string) bool {
	if len(name) < 10 {
		return false
	}
	switch name[:3] {
	case "orb", "orv", RouterPrefix, "orx", "orl", "orw":
		return true
	}
	return false
}

// Missing reports whether an error says that there is no such link.
func Missing(err error) bool { return errors.As(err, &netlink.LinkNotFoundError{}) }

// Whole asks the kernel for a list until it comes in one piece: it says so when something changed
// while it listed.
func Whole[T any](list func() ([]T, error)) ([]T, error) {
	for try := 1; ; try++ {
		all, err := list()
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			return all, err
		}
		if try == 50 {
			return slices.Clip(all), err
		}
	}
}

// NameOf returns the name of a link.
func NameOf(index int) string {
	link, err := netlink.LinkByIndex(index)
	if err != nil {
		return "several links"
	}
	return link.Attrs().Name
}

// Remove removes a link, if it is there.
func Remove(name string) error {
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if err != nil && !Missing(err) && !Gone(err) {
		return err
	}
	return nil
}

// Gone reports whether an error says that a link went while it was changed, as one does when its
// node's end goes.
func Gone(err error) bool { return errors.Is(err, unix.ENODEV) }

// IsUp reports whether a link is up.
func IsUp(link netlink.Link) bool { return link.Attrs().Flags&net.FlagUp != 0 }
