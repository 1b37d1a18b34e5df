package ends

import (
	"errors"
	"net"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// IsOwn reports whether an interface of the host is Orrery's, for one of its networks. Package site
// defines the names.
func IsOwn(name string) bool {
	if len(name) < 10 {
		return false
	}
	switch name[:3] {
	case "orb", "orv", RouterPrefix, "orx", "orl", "orw", "orf", "ort":
		return true
	}
	return false
}

// IsNotFound reports whether an error means that there is no such link.
func IsNotFound(err error) bool { return errors.As(err, &netlink.LinkNotFoundError{}) }

// ListConsistent calls list until it returns a consistent list. The kernel reports if something changed
// while it listed.
func ListConsistent[T any](list func() ([]T, error)) ([]T, error) {
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
		return "another link"
	}
	return link.Attrs().Name
}

// Remove removes a link, if it exists.
func Remove(name string) error {
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if err != nil && !IsNotFound(err) && !IsGone(err) {
		return err
	}
	return nil
}

// IsGone reports whether an error means that a link was removed while it was changed. This happens
// when the node's end is removed.
func IsGone(err error) bool { return errors.Is(err, unix.ENODEV) }

// IsUp reports whether a link is up.
func IsUp(link netlink.Link) bool { return link.Attrs().Flags&net.FlagUp != 0 }
