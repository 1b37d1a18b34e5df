package site

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// A Publish is ports of the host that lead to ports of a node.
type Publish struct {
	Address  netip.Addr `json:",omitzero"` // of the host, or the zero Addr for all its addresses except loopback
	Ports    PortRange  // of the host
	NodePort uint16     // the port of the node to which the first of Ports leads; the others count up
}

// maxTranslated is how many ports a range may have whose numbers differ on host and node. Each of
// them is a rule of its own.
const maxTranslated = 256

// Last returns the port of the node to which the last port of the host leads.
func (p Publish) Last() uint16 { return p.NodePort + p.Ports.Last - p.Ports.First }

// Translates reports whether the numbers of the ports differ on host and node.
func (p Publish) Translates() bool { return p.NodePort != p.Ports.First }

// String returns it in the form of a site file, with the protocol.
func (p Publish) String() string {
	address := ""
	switch {
	case p.Address.Is6():
		address = "[" + p.Address.String() + "]:"
	case p.Address.IsValid():
		address = p.Address.String() + ":"
	}
	return address + ports(p.Ports.First, p.Ports.Last) + ":" + ports(p.NodePort, p.Last()) + "/" + p.Ports.Proto
}

func ports(first, last uint16) string {
	if first == last {
		return strconv.Itoa(int(first))
	}
	return fmt.Sprintf("%d-%d", first, last)
}

// Overlaps reports whether two nodes of one host cannot both have their ports.
func (p Publish) Overlaps(other Publish) bool {
	return p.Ports.Proto == other.Ports.Proto && p.Ports.First <= other.Ports.Last && other.Ports.First <= p.Ports.Last &&
		(p.Address == other.Address || !p.Address.IsValid() || !other.Address.IsValid())
}

// After returns the ports of the i-th node of a range of nodes: those of the host count up, those of
// the node stay. It returns false if a port would be above 65535.
func (p Publish) After(i int) (Publish, bool) {
	step := (int(p.Ports.Last) - int(p.Ports.First) + 1) * i
	if int(p.Ports.Last)+step > 65535 {
		return p, false
	}
	p.Ports.First, p.Ports.Last = p.Ports.First+uint16(step), p.Ports.Last+uint16(step)
	return p, true
}

// DefaultRoute returns the interface of a node through which its default route leads, and the
// network, or false if none of its networks has a gateway. Ports are published to the address there,
// because answers to other machines take this way.
func (s *Site) DefaultRoute(n *Node) (*NIC, *Network, bool) {
	for i := range n.NICs {
		if on, ok := s.Network(n.NICs[i].Network); ok && on.Gateway.IsValid() {
			return &n.NICs[i], on, true
		}
	}
	return nil, nil, false
}

// Routes reports whether the host is the gateway of the network, so that it can lead its ports to
// nodes there. On other networks, nodes are on a wire themselves, or have no way out.
func (n *Network) Routes() bool {
	kind := KindOf(n.Kind)
	return n.Gateway.IsValid() && !n.Isolated && kind.HasHostEnds() && (n.NAT || !n.HasUplink())
}

// ParsePublish parses one entry of the key "publish" of a node, such as "8080:80",
// "10.1.2.3:443:443/tcp", "8000-8010:8000-8010" or "[2001:db8::1]:53:53/udp". The form is
// [ADDRESS:]HOSTPORT:NODEPORT[/tcp|udp].
func ParsePublish(text string) (Publish, error) {
	var p Publish
	rest, proto, said := strings.Cut(text, "/")
	if !said {
		proto = "tcp"
	}
	if proto != "tcp" && proto != "udp" {
		return p, fmt.Errorf("the protocol %q is neither tcp nor udp", proto)
	}
	at := strings.LastIndexByte(rest, ':')
	if at < 0 {
		return p, errors.New("it has no port of the node")
	}
	rest, node := rest[:at], rest[at+1:]
	if at = strings.LastIndexByte(rest, ':'); at >= 0 {
		address, err := parseBindAddress(rest[:at])
		if err != nil {
			return p, err
		}
		p.Address, rest = address, rest[at+1:]
	}
	first, last, err := parsePorts(rest)
	if err != nil {
		return p, err
	}
	nodeFirst, nodeLast, err := parsePorts(node)
	switch {
	case err != nil:
		return p, err
	case last-first != nodeLast-nodeFirst:
		return p, fmt.Errorf("the ranges on host and node have %d and %d ports", last-first+1, nodeLast-nodeFirst+1)
	}
	p.Ports, p.NodePort = PortRange{proto, uint16(first), uint16(last)}, uint16(nodeFirst)
	if p.Translates() && last-first >= maxTranslated {
		return p, fmt.Errorf("%d ports have other numbers on the node; the maximum is %d", last-first+1, maxTranslated)
	}
	return p, nil
}

func parseBindAddress(text string) (netip.Addr, error) {
	inner, bracketed := strings.CutPrefix(text, "[")
	if bracketed {
		inner, bracketed = strings.CutSuffix(inner, "]")
	}
	a, err := netip.ParseAddr(inner)
	switch {
	case err == nil && bracketed == a.Is6() && a.Zone() == "":
		return a, nil
	case err == nil && a.Is6() && a.Zone() == "":
		return a, fmt.Errorf("the IPv6 address %s is not in brackets", a)
	}
	return a, fmt.Errorf("%q is not an address of the host", text)
}

// parsePorts parses "80" or "8000-8010".
func parsePorts(text string) (first, last int, err error) {
	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		to = from
	}
	if first, err = parsePort(from); err == nil {
		last, err = parsePort(to)
	}
	if err == nil && (first > last || isRange && first == last) {
		err = fmt.Errorf("%q is not a range of ports", text)
	}
	return first, last, err
}

func parsePort(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != text { // no signs and no leading zeros
		return 0, fmt.Errorf("%q is not a port (1 to 65535)", text)
	}
	return int(n), nil
}
