package shape

import (
	"errors"
	"os"
	"time"

	"github.com/vishvananda/netlink"

	"orrery/internal/site/traffic"
)

// A State has the queues of this host's links.
type State struct {
	byLink map[int][]netlink.Qdisc
	limits bool // a link has Orrery's queue
}

// ReadState returns the queues of all links of this host, by one request to the kernel.
func ReadState() (*State, error) {
	qdiscs, err := listQdiscs(nil)
	if err != nil {
		return nil, err
	}
	s := &State{byLink: map[int][]netlink.Qdisc{}}
	for _, q := range qdiscs {
		index := q.Attrs().LinkIndex
		s.byLink[index] = append(s.byLink[index], q)
		s.limits = s.limits || isRoot(q)
	}
	return s, nil
}

// InForce returns the limits of a port that are in force. It returns want if they mean the same,
// because the kernel rounds some of them. If the directions differ, it returns the limits of one
// that are not as wanted. A missing port has no limits.
func (s *State) InForce(port string, want traffic.Limits) (traffic.Limits, error) {
	if want == (traffic.Limits{}) && !s.limits {
		return want, nil // without a request to the kernel for each link
	}
	link, err := netlink.LinkByName(port)
	if err != nil {
		return traffic.Limits{}, ignoreMissing(err)
	}
	if want == (traffic.Limits{}) && s.rootOf(link) == nil {
		return want, nil
	}
	to, err := s.queueOf(link, want)
	if err != nil || to != want || want == (traffic.Limits{}) {
		return to, err
	}
	ifb, err := findIFB(port)
	if err != nil || ifb == nil {
		return traffic.Limits{}, err
	}
	if ok, err := redirects(link, ifb); !ok || err != nil {
		return traffic.Limits{}, err
	}
	return s.queueOf(ifb, want)
}

func ignoreMissing(err error) error {
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	return err
}

// isRoot reports whether a queue is Orrery's, at the root of its link.
func isRoot(q netlink.Qdisc) bool {
	return q.Attrs().Parent == netlink.HANDLE_ROOT && q.Attrs().Handle == rootHandle()
}

// rootOf returns Orrery's queue of a link, or nil if there is none.
func (s *State) rootOf(link netlink.Link) netlink.Qdisc {
	for _, q := range s.byLink[link.Attrs().Index] {
		if isRoot(q) {
			return q
		}
	}
	return nil
}

// queueOf returns the limits of what leaves a link.
func (s *State) queueOf(link netlink.Link, want traffic.Limits) (l traffic.Limits, err error) {
	switch root := s.rootOf(link).(type) {
	case *netlink.Netem:
		l = delaysOf(root, netem(link, netlink.HANDLE_ROOT, rootHandle(), want), want)
	case *netlink.Htb:
		classes, err := consistent(func() ([]netlink.Class, error) { return netlink.ClassList(link, 0) })
		if err != nil {
			return l, ignoreMissing(err)
		}
		if len(classes) != 1 || root.Defcls != 1 || classes[0].Attrs().Handle != classHandle() {
			return l, nil
		}
		c, ok := classes[0].(*netlink.HtbClass)
		if !ok {
			return l, nil
		}
		l = rateOf(c, class(link, want), want)
		for _, q := range s.byLink[link.Attrs().Index] {
			if n, ok := q.(*netlink.Netem); ok && q.Attrs().Parent == classHandle() {
				delays := delaysOf(n, netem(link, classHandle(), 0, want), want)
				l.Latency, l.Jitter, l.Loss = delays.Latency, delays.Jitter, delays.Loss
			}
		}
	}
	return l, nil
}

// rateOf returns the rate and the burst of a class.
func rateOf(c, shall *netlink.HtbClass, want traffic.Limits) (l traffic.Limits) {
	if c.Rate == shall.Rate && c.Ceil == shall.Ceil {
		l.Rate = want.Rate
	} else {
		l.Rate = traffic.Rate(max(c.Rate, c.Ceil) * 8)
	}
	if c.Buffer == shall.Buffer && c.Cbuffer == shall.Cbuffer {
		l.Burst = want.Burst
	} else {
		l.Burst = int64(float64(c.Rate) * float64(c.Buffer) / netlink.TickInUsec() / 1e6)
	}
	return l
}

// delaysOf returns what netem does to frames.
func delaysOf(q, shall *netlink.Netem, want traffic.Limits) traffic.Limits {
	same := *q
	same.QdiscAttrs = shall.QdiscAttrs
	if same == *shall {
		return traffic.Limits{Latency: want.Latency, Jitter: want.Jitter, Loss: want.Loss}
	}
	usec := func(ticks uint32) time.Duration {
		return time.Duration(float64(ticks)/netlink.TickInUsec()) * time.Microsecond
	}
	return traffic.Limits{Latency: usec(q.Latency), Jitter: usec(q.Jitter), Loss: traffic.LossOf32(q.Loss)}
}

func listQdiscs(link netlink.Link) ([]netlink.Qdisc, error) {
	return consistent(func() ([]netlink.Qdisc, error) { return netlink.QdiscList(link) })
}

// consistent calls list until the kernel reports that nothing changed while it listed.
func consistent[T any](list func() ([]T, error)) ([]T, error) {
	const tries = 50
	for try := 1; ; try++ {
		all, err := list()
		if !errors.Is(err, netlink.ErrDumpInterrupted) || try == tries {
			return all, err
		}
	}
}

// writeIPv6Off stops the host from having IPv6 addresses on a link.
func writeIPv6Off(link string) error {
	return os.WriteFile("/proc/sys/net/ipv6/conf/"+link+"/disable_ipv6", []byte("1"), 0o644)
}
