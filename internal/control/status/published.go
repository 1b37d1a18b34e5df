package status

import (
	"net"
	"os"
	"strconv"
	"strings"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A Published is ports of the host that lead to a node, as the node's live release declares them.
type Published struct {
	Ports   string `json:"ports"`             // of the host: "tcp/8080"
	Address string `json:"address,omitempty"` // of the host, or "" for all its addresses
	Node    string `json:"node"`              // ports of the node: "80"
	URL     string `json:"url,omitempty"`     // for a single port of tcp
}

// publishedPorts returns the ports of a host that lead to a node.
func publishedPorts(maker *spec.Builder, n *site.Node, host string) []Published {
	var all []Published
	_, ports := maker.Published(n)
	for _, p := range ports {
		one := Published{Ports: p.Ports.String(),
			Node: strings.TrimPrefix(site.PortRange{First: p.NodePort, Last: p.Publish.Last()}.String(), "/")}
		at := hostAddress(maker.Site, host)
		if p.Address.IsValid() {
			one.Address = p.Address.String()
			at = one.Address
		}
		if p.Ports.Proto == "tcp" && p.Ports.First == p.Ports.Last {
			one.URL = urlOf(at, p.Publish)
		}
		all = append(all, one)
	}
	return all
}

// urlOf returns an address for a browser. Nothing is known of the protocol; the usual ports of https
// have that.
func urlOf(host string, p site.Publish) string {
	scheme, usual := "http", uint16(80)
	if port := p.NodePort; port == 443 || port == 8443 || p.Ports.First == 443 {
		scheme, usual = "https", 443
	}
	if p.Ports.First != usual {
		host = net.JoinHostPort(host, strconv.Itoa(int(p.Ports.First)))
	}
	return scheme + "://" + host + "/"
}

// hostAddress returns the name or address by which other machines probably reach a host: that by
// which the control host does, or the name of this machine.
func hostAddress(s *site.Site, name string) string {
	for _, h := range s.Hosts {
		if h.Name == name && !h.Local() {
			at := h.Address[strings.LastIndex(h.Address, "@")+1:]
			if alone, _, err := net.SplitHostPort(at); err == nil {
				return alone
			}
			return strings.Trim(at, "[]")
		}
	}
	if own, err := os.Hostname(); err == nil {
		return own
	}
	return "localhost"
}
