package ends

import (
	"errors"
	"slices"

	"github.com/vishvananda/netlink"
)

// Own reports whether an interface of the host is Orrery's own, for one of its networks: site has how they are called.
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

// Whole asks the kernel for a list until it comes in one piece: it says so when something changed while it listed.
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

// NameOf gives the name of a link.
func NameOf(index int) string {
	link, err := netlink.LinkByIndex(index)
	if err != nil {
		return "several links"
	}
	return link.Attrs().Name
}
