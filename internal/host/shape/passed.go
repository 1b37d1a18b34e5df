package shape

import (
	"github.com/vishvananda/netlink"

	"orrery/internal/problem"
)

// A Passage counts the bytes that pass a port of a node behind the limits, with frame headers.
type Passage struct {
	port, from string // from is the interface whose counter has what came from the node
	ifb        bool
}

// PassageOf returns the Passage of a port. What comes from the node is counted as it leaves the ifb.
// If the frames do not all go through one, nothing limits them, and they are counted at the port.
func PassageOf(port string) (Passage, error) {
	link, err := netlink.LinkByName(port)
	if err != nil {
		return Passage{}, err
	}
	p := Passage{port: port, from: port}
	ifb, err := findIFB(port)
	if err != nil || ifb == nil {
		return p, err
	}
	ok, err := redirects(link, ifb)
	if ok {
		p.from, p.ifb = IFBName(port), true
	}
	return p, err
}

// Count returns the bytes that have passed to the node and from it, since their interfaces exist.
func (p Passage) Count() (to, from uint64, err error) {
	link, err := netlink.LinkByName(p.port)
	if err != nil {
		return 0, 0, err
	}
	s := link.Attrs().Statistics
	if s == nil {
		return 0, 0, problem.New(problem.Unable, "the kernel has no counters of interface %s", p.port)
	}
	to, from = s.TxBytes, s.RxBytes
	if p.ifb {
		if link, err = netlink.LinkByName(p.from); err != nil {
			return 0, 0, err
		}
		if link.Attrs().Statistics == nil {
			return 0, 0, problem.New(problem.Unable, "the kernel has no counters of interface %s", p.from)
		}
		from = link.Attrs().Statistics.TxBytes
	}
	return to, from, nil
}
