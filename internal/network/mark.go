package network

import (
	"strings"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// mark returns the alias of a link, which describes what it was made for: "orrery SITE NETWORK
// SUBNET GATEWAY nat", with "-" for each missing part. "nat" is replaced by "router" if the network
// has a router of its own ("outlet" in former versions), or by "inside" if that router leads nowhere. Optional
// words follow: the host's opened ports ("host=tcp/22,udp/53"), "spoof", "metadata", the allowed protocols
// ("protocols=0x88f7") and the active services ("answers=dns>10.8.67.21").
// For a network that is not a bridge, its kind and interface come next, and for a veth pair its
// ends. The rules follow from the mark alone, so the table of a site can be rewritten when the spec
// of only one of its networks is available.
func mark(n spec.Network) string {
	nat := ""
	switch {
	case n.Router && !n.NAT:
		nat = markInside
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
	if n.Answers != "" {
		words = append(words, markAnswers+n.Answers)
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

// readMark returns the network that an alias describes.
func readMark(alias string) (spec.Network, bool) {
	words := upgradeWords(strings.Fields(alias))
	if len(words) < 6 || words[0] != "orrery" {
		return spec.Network{}, false
	}
	routed := words[5] == "router" || words[5] == "outlet"
	n := spec.Network{
		Site: words[1], Name: words[2], Bridge: site.BridgeName(words[1], words[2]), Subnet: undash(words[3]),
		Gateway: undash(words[4]),
		NAT:     words[5] == "nat" || routed, Router: routed || words[5] == markInside,
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
	if len(more) > 0 {
		if answers, ok := strings.CutPrefix(more[0], markAnswers); ok {
			n.Answers, more = answers, more[1:]
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
	return n, check(n) == nil // any program may write an alias
}

// upgradeWords converts the words of an old mark to the current format. Veth pairs were called "cable".
func upgradeWords(words []string) []string {
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
	markAnswers   = "answers="
	markInside    = "inside"
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
