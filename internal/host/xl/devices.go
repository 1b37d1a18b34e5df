package xl

import (
	"context"
	"strings"
)

// Connected is the state of a device whose frontend and backend are connected (XenbusStateConnected
// of Xen's io/xenbus.h).
const Connected = 4

// A NIC is a network card of a domain.
type NIC struct {
	Index, State int
	MAC          string
	Backend      string // path of the backend in xenstore
}

// NICs returns the network cards of a domain.
func NICs(ctx context.Context, domain string) ([]NIC, error) {
	text, err := Output(ctx, "network-list", domain)
	if err != nil {
		return nil, err
	}
	return ParseNICs(text)
}

// ParseNICs parses the output of `xl network-list`.
func ParseNICs(text []byte) (all []NIC, err error) {
	lines, err := tableLines(text, "Idx", "BE", "Mac", "Addr.", "handle", "state")
	for _, line := range lines {
		words := strings.Fields(line)
		if len(words) < 7 {
			return nil, unexpected(line)
		}
		c := NIC{MAC: words[2], Backend: words[len(words)-1]}
		if number(words[0], &c.Index) != nil || number(words[4], &c.State) != nil || strings.Count(c.MAC, ":") != 5 {
			return nil, unexpected(line)
		}
		all = append(all, c)
	}
	return all, err
}

// A Disk is a disk of a domain.
type Disk struct {
	Device, State int
	Backend       string
}

// Disks returns the disks of a domain.
func Disks(ctx context.Context, domain string) ([]Disk, error) {
	text, err := Output(ctx, "block-list", domain)
	if err != nil {
		return nil, err
	}
	return ParseDisks(text)
}

// ParseDisks parses the output of `xl block-list`.
func ParseDisks(text []byte) (all []Disk, err error) {
	lines, err := tableLines(text, "Vdev", "BE", "handle", "state")
	for _, line := range lines {
		words := strings.Fields(line)
		if len(words) < 7 {
			return nil, unexpected(line)
		}
		d := Disk{Backend: words[len(words)-1]}
		if number(words[0], &d.Device) != nil || number(words[3], &d.State) != nil {
			return nil, unexpected(line)
		}
		all = append(all, d)
	}
	return all, err
}
