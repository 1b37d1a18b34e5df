package network

import (
	"strings"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// mark says, in the alias of a link, what it was made for: "orrery SITE NETWORK SUBNET GATEWAY
// nat", with "-" for what there is not, and "router" in place of "nat" if one of its own does that
// ("outlet", before); what it opens of the host ("host=tcp/22,udp/53") and "spoof", "metadata" and
// the protocols that it allows ("protocols=0x88f7") are behind, if there are any; of a network that
// is no bridge, its kind and interface come next, and of a veth pair its ends. It holds all that
// the rules follow from, so that the table of a site can be written anew when only one of its
// networks is at hand.
func mark(n spec.Network) string {
	nat := ""
	switch {
	case n.Router:
		nat = "router"
	case n.NAT:
		nat = "nat"
	}
	words := []string{"orrery", n.Site, n.Name, dash(n.Subnet), dash(n.Gateway), dash(nat)}
	if n.Host != "" {
		words = append(words, markHost+n.Host)
	}
	if n.Spoof {
		words = append(words, markSpoof)
	}
	if n.Metadata {
		words = append(words, markMetadata)
	}
	if n.Protocols != "" {
		words = append(words, markProtocols+n.Protocols)
	}
	switch n.Kind {
	case "":
	case spec.VethPair:
		words = append(words, n.Kind, n.Ends[0], n.Ends[1])
	default:
		words = append(words, n.Kind, dash(n.Parent))
	}
	return strings.Join(words, " ")
}

// readMark returns the network that an alias marks.
func readMark(alias string) (spec.Network, bool) {
	words := renamed(strings.Fields(alias))
	if len(words) < 6 || words[0] != "orrery" {
		return spec.Network{}, false
	}
	routed := words[5] == "router" || words[5] == "outlet"
	n := spec.Network{
		Site: words[1], Name: words[2], Bridge: site.BridgeName(words[1], words[2]), Subnet: undash(words[3]),
		Gateway: undash(words[4]),
		NAT:     words[5] == "nat" || routed, Router: routed,
	}
	more := words[6:]
	if len(more) > 0 {
		if host, ok := strings.CutPrefix(more[0], markHost); ok {
			n.Host, more = host, more[1:]
		}
	}
	if len(more) > 0 && more[0] == markSpoof {
		n.Spoof, more = true, more[1:]
	}
	if len(more) > 0 && more[0] == markMetadata {
		n.Metadata, more = true, more[1:]
	}
	if len(more) > 0 {
		if protocols, ok := strings.CutPrefix(more[0], markProtocols); ok {
			n.Protocols, more = protocols, more[1:]
		}
	}
	switch {
	case len(more) == 0:
	case len(more) == 3 && more[0] == spec.VethPair:
		n.Kind, n.Ends = more[0], [2]string{more[1], more[2]}
	case len(more) == 2 && more[0] != spec.VethPair:
		n.Kind, n.Parent = more[0], undash(more[1])
	default:
		return spec.Network{}, false
	}
	return n, check(n) == nil // anybody may write an alias
}

// renamed returns the words of a mark as they are written now; that of a veth pair said "cable" before.
func renamed(words []string) []string {
	if len(words) == 9 && words[6] == "cable" {
		words[2], words[6] = strings.Replace(words[2], "cable.", spec.VethPair+".", 1), spec.VethPair
	}
	return words
}

const (
	markHost      = "host="
	markSpoof     = "spoof"
	markMetadata  = "metadata"
	markProtocols = "protocols="
)

func dash(word string) string {
	if word == "" {
		return "-"
	}
	return word
}

func undash(word string) string {
	if word == "-" {
		return ""
	}
	return word
}
