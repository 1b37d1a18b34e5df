// Package shape limits what passes through the host's ends of links to nodes: the rate of bits, and
// for tests the delay and the loss of frames. A node cannot change the limits, because they are on
// the host.
//
// Frames to a node leave the host through the host's end, which queues them in htb, a token bucket
// (tc-htb(8)). Frames from a node arrive there, where nothing can wait. So they are redirected to an
// interface of type ifb, which exists for this purpose, and queue there in the same way before they
// go on as if they had just arrived. The guard of the ports (package ports) sees them after that.
// Dropping frames instead (policing) was up to 9 % off in measurements, and queueing at most 0.05 %.
//
//	host's end   htb 4f52: ─ class 4f52:1 ─ bfifo 4f53:, or netem 4f54: if frames are delayed or lost
//	             ingress ffff: ─ redirects all frames to the ifb
//	ifb          the same as the host's end
//
// Without a rate, netem has the handle 4f52: itself.
package shape

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"orrery/internal/site/traffic"
)

// The handles of Orrery's queues. Any other queue was made by another program.
const (
	major      = 0x4f52
	majorFIFO  = 0x4f53
	majorNetem = 0x4f54
)

func rootHandle() uint32  { return netlink.MakeHandle(major, 0) }
func classHandle() uint32 { return netlink.MakeHandle(major, 1) }

// ifbPrefix begins the names of the interfaces for frames from nodes.
const ifbPrefix = "ort"

// IFBName returns the name of the interface for frames from the node with a port. All names of
// ports begin with three letters that say what they are.
func IFBName(port string) string { return ifbPrefix + port[min(len(ifbPrefix), len(port)):] }

// Set sets the limits of a port in both directions, or removes them if there are none. A port that
// is not yet up never passes a frame without them.
func Set(port netlink.Link, l traffic.Limits) error {
	if l == (traffic.Limits{}) {
		return Clear(port)
	}
	if err := setQueue(port, l); err != nil {
		return fmt.Errorf("limit traffic to the node: %w", err)
	}
	if err := setFrom(port, l); err != nil {
		return fmt.Errorf("limit traffic from the node: %w", err)
	}
	return nil
}

// Clear removes the limits of a port, and nothing that another program has made there.
func Clear(port netlink.Link) error {
	qdiscs, err := listQdiscs(port)
	if err != nil {
		return err
	}
	ifb, err := findIFB(port.Attrs().Name)
	if err != nil {
		return err
	}
	for _, q := range qdiscs {
		// Frames that are redirected to an interface that no longer exists are lost. So the redirection is
		// removed first.
		if isRoot(q) || ifb != nil && isIngress(q) {
			if err := ignore(netlink.QdiscDel(q), unix.ENOENT, unix.EINVAL); err != nil {
				return err
			}
		}
	}
	return RemoveIFB(port.Attrs().Name)
}

// RemoveIFB removes the interface for frames from the node with a port, if it exists.
func RemoveIFB(port string) error {
	ifb, err := findIFB(port)
	if err != nil || ifb == nil {
		return err
	}
	return ignore(netlink.LinkDel(ifb), unix.ENODEV)
}

// Sweep removes the interfaces for frames from nodes whose ports no longer exist, because their
// node ended on its own.
func Sweep(links []netlink.Link) error {
	wanted := map[string]bool{}
	for _, link := range links {
		if name := link.Attrs().Name; !strings.HasPrefix(name, ifbPrefix) {
			wanted[IFBName(name)] = true
		}
	}
	var errs []error
	for _, link := range links {
		name := link.Attrs().Name
		if link.Type() == "ifb" && strings.HasPrefix(name, ifbPrefix) && !wanted[name] {
			errs = append(errs, ignore(netlink.LinkDel(link), unix.ENODEV))
		}
	}
	return errors.Join(errs...)
}

// findIFB returns the interface for frames from the node with a port, or nil if there is none.
func findIFB(port string) (netlink.Link, error) {
	link, err := netlink.LinkByName(IFBName(port))
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil, nil //nolint:nilnil // none is not an error
	}
	if err == nil && link.Type() != "ifb" {
		return nil, fmt.Errorf("interface %s exists and is not Orrery's", IFBName(port))
	}
	return link, err
}

// setFrom limits the frames from a node.
func setFrom(port netlink.Link, l traffic.Limits) error {
	ifb, err := findIFB(port.Attrs().Name)
	if err != nil {
		return err
	}
	if ifb == nil {
		if ifb, err = addIFB(port); err != nil {
			return err
		}
	}
	if err := setQueue(ifb, l); err != nil {
		return err
	}
	if ok, err := redirects(port, ifb); ok || err != nil {
		return err
	}
	return redirect(port, ifb)
}

func addIFB(port netlink.Link) (netlink.Link, error) {
	name := IFBName(port.Attrs().Name)
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = name, max(port.Attrs().MTU, 1500)
	if err := netlink.LinkAdd(&netlink.Ifb{LinkAttrs: attrs}); err != nil {
		if errors.Is(err, unix.EOPNOTSUPP) {
			err = lacks("interfaces of type ifb", "ifb", err)
		}
		return nil, err
	}
	ifb, err := netlink.LinkByName(name)
	if err == nil {
		err = ignore(writeIPv6Off(name), unix.ENOENT)
	}
	if err == nil {
		err = netlink.LinkSetUp(ifb)
	}
	return ifb, err
}

// redirects reports whether all frames that arrive at a port go to an ifb that is up.
func redirects(port, ifb netlink.Link) (bool, error) {
	if ifb.Attrs().Flags&net.FlagUp == 0 {
		return false, nil
	}
	filters, err := netlink.FilterList(port, netlink.MakeHandle(0xffff, 0))
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) { // there is no ingress queue
		return false, nil
	}
	if err != nil || len(filters) != 1 {
		return false, err
	}
	f, ok := filters[0].(*netlink.U32)
	if !ok || f.Sel == nil || len(f.Sel.Keys) != 1 || f.Sel.Keys[0].Mask != 0 || f.Attrs().Protocol != unix.ETH_P_ALL ||
		len(f.Actions) != 1 {
		return false, nil
	}
	m, ok := f.Actions[0].(*netlink.MirredAction)
	return ok && m.MirredAction == netlink.TCA_EGRESS_REDIR && m.Ifindex == ifb.Attrs().Index, nil
}

// redirect redirects all frames that arrive at a port to an ifb.
func redirect(port, ifb netlink.Link) error {
	if err := netlink.LinkSetUp(ifb); err != nil {
		return err
	}
	qdiscs, err := listQdiscs(port)
	if err != nil {
		return err
	}
	for _, q := range qdiscs {
		if isIngress(q) {
			if err := ignore(netlink.QdiscDel(q), unix.ENOENT, unix.EINVAL); err != nil {
				return err
			}
		}
	}
	ingress := &netlink.Ingress{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: port.Attrs().Index,
		Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_INGRESS}}
	if err := netlink.QdiscAdd(ingress); err != nil {
		return unknownIfMissing(err, "ingress")
	}
	err = netlink.FilterAdd(&netlink.U32{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: port.Attrs().Index, Parent: netlink.MakeHandle(0xffff, 0),
			Priority: 1, Protocol: unix.ETH_P_ALL},
		Actions: []netlink.Action{netlink.NewMirredAction(ifb.Attrs().Index)},
	})
	if errors.Is(err, unix.ENOENT) {
		return lacks("filters that redirect frames", "cls_u32 act_mirred", err)
	}
	return err
}

func isIngress(q netlink.Qdisc) bool { return q.Attrs().Parent == netlink.HANDLE_INGRESS }

// setQueue makes the queue of what leaves a link, or changes it without losing what waits there.
func setQueue(link netlink.Link, l traffic.Limits) error {
	kind := "htb"
	if l.Rate == 0 {
		kind = "netem"
	}
	qdiscs, err := listQdiscs(link)
	if err != nil {
		return err
	}
	existing := false
	for _, q := range qdiscs {
		switch attrs := q.Attrs(); {
		case attrs.Parent != netlink.HANDLE_ROOT || attrs.Handle == 0: // the kernel's own have no handle
		case attrs.Handle == rootHandle() && q.Type() == kind:
			existing = true
		default:
			if err := ignore(netlink.QdiscDel(q), unix.ENOENT, unix.EINVAL); err != nil {
				return err
			}
		}
	}
	if kind == "netem" {
		return unknownIfMissing(netlink.QdiscReplace(netem(link, netlink.HANDLE_ROOT, rootHandle(), l)), "netem")
	}
	if !existing {
		htb := netlink.NewHtb(netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: rootHandle(),
			Parent: netlink.HANDLE_ROOT})
		htb.Defcls = 1
		if err := netlink.QdiscAdd(htb); err != nil {
			return unknownIfMissing(err, "htb")
		}
	}
	if err := netlink.ClassReplace(class(link, l)); err != nil {
		return err
	}
	if l.Delays() {
		q := netem(link, classHandle(), netlink.MakeHandle(majorNetem, 0), l)
		return unknownIfMissing(netlink.QdiscReplace(q), "netem")
	}
	return unknownIfMissing(replaceFIFO(link, l.QueueBytes()), "bfifo")
}

// class returns the class of htb through which everything passes.
func class(link netlink.Link, l traffic.Limits) *netlink.HtbClass {
	burst := uint32(l.BurstBytes())
	c := netlink.NewHtbClass(
		netlink.ClassAttrs{LinkIndex: link.Attrs().Index, Handle: classHandle(), Parent: rootHandle()},
		netlink.HtbClassAttrs{Rate: uint64(l.Rate), Ceil: uint64(l.Rate), Buffer: burst, Cbuffer: burst, Quantum: quantum})
	c.Buffer, c.Cbuffer = burstTicks(c.Rate, burst), burstTicks(c.Rate, burst)
	return c
}

// quantum is how many bytes a class sends before its siblings. There are none, but the kernel would
// log that its own choice is large.
const quantum = 60_000

// burstTicks returns the time in which a burst passes, in the kernel's unit of 64 ns. The library
// computes it in whole microseconds, which is less than a burst at high rates.
func burstTicks(bytesPerSecond uint64, burst uint32) uint32 {
	ticks := float64(burst) / float64(max(bytesPerSecond, 1)) * 1e6 * netlink.TickInUsec()
	return uint32(min(ticks, 1<<31))
}

// netem returns the queue that delays and loses frames.
func netem(link netlink.Link, parent, handle uint32, l traffic.Limits) *netlink.Netem {
	q := netlink.NewNetem(netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: handle, Parent: parent},
		netlink.NetemQdiscAttrs{Latency: uint32(l.Latency.Microseconds()), Jitter: uint32(l.Jitter.Microseconds()),
			Limit: netemFrames(l)})
	q.Loss = l.Loss.Of32()
	return q
}

// netemFrames returns how many frames netem must hold: all that may be on their way, and wait for the
// rate, but not so many that a node could fill the host's memory.
func netemFrames(l traffic.Limits) uint32 {
	const (
		unlimited = 10_000_000_000 // bit/s that a link may reach if no rate is declared
		frame     = 1000           // bytes
		fewest    = 1000
		most      = 20_000
	)
	rate := float64(l.Rate)
	if rate == 0 {
		rate = unlimited
	}
	waiting := rate/8*(l.Latency+l.Jitter).Seconds() + float64(l.QueueBytes())
	return uint32(min(max(waiting/frame, fewest), most))
}

// replaceFIFO makes the queue of what waits for the rate, or changes its length. The library does not
// know this queue.
func replaceFIFO(link netlink.Link, bytes int64) error {
	request := nl.NewNetlinkRequest(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_REPLACE|unix.NLM_F_ACK)
	request.AddData(&nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(link.Attrs().Index),
		Handle: netlink.MakeHandle(majorFIFO, 0), Parent: classHandle()})
	request.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated("bfifo")))
	request.AddData(nl.NewRtAttr(nl.TCA_OPTIONS, nl.Uint32Attr(uint32(bytes)))) // struct tc_fifo_qopt
	_, err := request.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// lacks returns the error that the kernel lacks something.
func lacks(what, modules string, err error) error {
	return fmt.Errorf("the kernel has no %s (modprobe %s): %w", what, modules, err)
}

// unknownIfMissing explains the kernel's answer that it does not know a kind of queue.
func unknownIfMissing(err error, kind string) error {
	if errors.Is(err, unix.ENOENT) {
		return lacks("queues of kind "+kind, "sch_"+kind, err)
	}
	return err
}

func ignore(err error, some ...unix.Errno) error {
	for _, e := range some {
		if errors.Is(err, e) {
			return nil
		}
	}
	return err
}
