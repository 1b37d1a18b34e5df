package spec

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"orrery/internal/site"
)

// A Published is ports of a host that lead to a node.
type Published struct {
	Node string // its name
	site.Publish
	To netip.Addr // address of the node
}

// String returns it in the form of Network.Publish: "portal=8080:80/tcp>10.8.67.11".
func (p Published) String() string {
	return p.Node + "=" + p.Publish.String() + ">" + p.To.String()
}

// FormatPublished returns the value of Network.Publish.
func FormatPublished(all []Published) string {
	var texts []string
	for _, p := range all {
		texts = append(texts, p.String())
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), ",")
}

// ParsePublished parses the value of Network.Publish.
func ParsePublished(list string) ([]Published, error) {
	if list == "" {
		return nil, nil
	}
	var all []Published
	for text := range strings.SplitSeq(list, ",") {
		p, err := parsePublished(text)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		all = append(all, p)
	}
	return all, nil
}

func parsePublished(text string) (p Published, err error) {
	node, rest, ok1 := strings.Cut(text, "=")
	ports, to, ok2 := strings.Cut(rest, ">")
	if !ok1 || !ok2 || node == "" {
		return p, fmt.Errorf("it is not of the form NODE=PORTS>ADDRESS")
	}
	p.Node = node
	if p.Publish, err = site.ParsePublish(ports); err == nil {
		p.To, err = netip.ParseAddr(to)
	}
	if err == nil && (!p.To.Is4() || p.Address.IsValid() && !p.Address.Is4()) {
		err = fmt.Errorf("ports lead from IPv4 to IPv4")
	}
	return p, err
}

// Published returns the ports of its host that lead to a node, and the network on which it is
// reached. It returns none for a node in quarantine, or if the host is not the gateway of the node.
func (m *Builder) Published(n *site.Node) (network string, all []Published) {
	nic, on, ok := m.Site.DefaultRoute(n)
	if !ok || !on.Routes() || m.Site.Stage != 0 || len(n.Publish) == 0 {
		return "", nil
	}
	for _, p := range n.Publish {
		all = append(all, Published{n.Name, p, nic.Address})
	}
	return on.Name, all
}

// AllPublished returns the entries of Network.Publish. A list that cannot be parsed has none.
func (n *Network) AllPublished() []Published {
	all, _ := ParsePublished(n.Publish)
	return all
}

// PublishedExcept returns the entries of Network.Publish whose nodes are not in some.
func (n *Network) PublishedExcept(some func(node string) bool) []Published {
	return slices.DeleteFunc(n.AllPublished(), func(p Published) bool { return some(p.Node) })
}
