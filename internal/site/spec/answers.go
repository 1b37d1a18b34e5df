package spec

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"orrery/internal/site"
	"orrery/internal/site/service"
)

// An Answer is an active service (service.Active) as a host has it: what nodes of a network send to the ports of
// the service at the gateway's address goes to the node that answers.
type Answer struct {
	Kind string
	To   netip.Addr // address of the node
}

// String returns it in the form of Network.Answers: "dns>10.8.67.21".
func (a Answer) String() string { return a.Kind + ">" + a.To.String() }

// Ports returns the ports of the service.
func (a Answer) Ports() []site.PortRange {
	switch a.Kind {
	case service.DNS:
		return []site.PortRange{{Proto: "udp", First: 53, Last: 53}, {Proto: "tcp", First: 53, Last: 53}}
	case service.NTP:
		return []site.PortRange{{Proto: "udp", First: 123, Last: 123}}
	}
	return nil
}

// ParseAnswers parses the value of Network.Answers.
func ParseAnswers(list string) ([]Answer, error) {
	if list == "" {
		return nil, nil
	}
	var all []Answer
	for text := range strings.SplitSeq(list, ",") {
		kind, to, _ := strings.Cut(text, ">")
		address, err := netip.ParseAddr(to)
		if err != nil || !address.Is4() || !slices.Contains(service.Kinds, kind) {
			return nil, fmt.Errorf("%q is not of the form KIND>ADDRESS", text)
		}
		all = append(all, Answer{kind, address})
	}
	return all, nil
}

// AllAnswers returns the entries of Network.Answers. A list that cannot be parsed has none.
func (n *Network) AllAnswers() []Answer {
	all, _ := ParseAnswers(n.Answers)
	return all
}

// AnswersOn returns the value of Network.Answers for a live network of a site on a host. A node without a host
// counts as being there, because then the site has only one host.
func AnswersOn(s *site.Site, host, network string) string {
	if !s.IsServed(network, "") || s.Stage != 0 {
		return ""
	}
	var all []string
	nodes := s.NodesByName()
	for i := range s.Active {
		a := &s.Active[i]
		if a.Network != network {
			continue
		}
		for _, name := range a.Nodes {
			n := nodes[name]
			if n == nil || n.Host != "" && n.Host != host {
				continue
			}
			k := slices.IndexFunc(n.NICs, func(nic site.NIC) bool { return nic.Network == network })
			if k >= 0 && n.NICs[k].Address.Is4() {
				all = append(all, Answer{a.Kind, n.NICs[k].Address}.String())
				break
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}
