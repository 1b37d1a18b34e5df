package site

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// namedProtocols are the EtherTypes that have names.
var namedProtocols = map[string]uint16{
	"ptp": 0x88f7, // IEEE 1588 over Ethernet
}

// filteredProtocols are the protocols that a port's filter inspects, or that would hide these from
// the filter. Only spoof = true allows them.
var filteredProtocols = []uint16{
	0x0800, 0x0806, 0x86dd, // IPv4, ARP, IPv6
	0x8100, 0x88a8, 0x9100, 0x9200, 0x9300, // VLAN tags
}

// minEtherType is the lowest EtherType. A smaller number is the length of an IEEE 802.2 frame.
const minEtherType = 0x600

// ParseProtocols parses the protocols that nodes of a network may send, other than IP and ARP. Each
// is "ptp" or an EtherType such as "0x88a4". It returns the EtherTypes sorted and without
// duplicates.
func ParseProtocols(words []string) ([]uint16, error) {
	var all []uint16
	for _, word := range words {
		named, ok := namedProtocols[word]
		if ok {
			all = append(all, named)
			continue
		}
		digits, hex := strings.CutPrefix(word, "0x")
		n, err := strconv.ParseUint(digits, 16, 16)
		switch {
		case !hex || err != nil || len(digits) != 4 || n < minEtherType:
			return nil, fmt.Errorf("%q is not an Ethernet protocol", word)
		case slices.Contains(filteredProtocols, uint16(n)):
			return nil, fmt.Errorf("%q is filtered by address and cannot be listed", word)
		}
		all = append(all, uint16(n))
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// FormatProtocols returns EtherTypes in the form that ParseProtocols reads, separated by commas.
func FormatProtocols(all []uint16) string {
	var words []string
	for _, p := range all {
		words = append(words, fmt.Sprintf("%#04x", p))
	}
	return strings.Join(words, ",")
}
