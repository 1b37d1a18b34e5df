package site

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// namedProtocols are EtherTypes that have names.
var namedProtocols = map[string]uint16{
	"ptp": 0x88f7, // IEEE 1588 over Ethernet
}

// judgedProtocols are those of which the guard of a port looks at what is inside, or which would
// hide that from it: only spoof = true opens them.
var judgedProtocols = []uint16{
	0x0800, 0x0806, 0x86dd, // IPv4, ARP, IPv6
	0x8100, 0x88a8, 0x9100, 0x9200, 0x9300, // VLAN tags
}

// minEtherType is the least one. What is below it is the length of a frame of IEEE 802.2.
const minEtherType = 0x600

// ParseProtocols reads which protocols nodes of a network may send besides IP and ARP, "ptp" or an
// EtherType such as "0x88a4", and returns the EtherTypes sorted, each once.
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
			return nil, fmt.Errorf("%q is no protocol of Ethernet", word)
		case slices.Contains(judgedProtocols, uint16(n)):
			return nil, fmt.Errorf("%q cannot be allowed by itself", word)
		}
		all = append(all, uint16(n))
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// FormatProtocols returns EtherTypes as ParseProtocols reads them, with commas between them.
func FormatProtocols(all []uint16) string {
	var words []string
	for _, p := range all {
		words = append(words, fmt.Sprintf("%#04x", p))
	}
	return strings.Join(words, ",")
}
