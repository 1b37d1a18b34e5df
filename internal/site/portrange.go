package site

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A PortRange is a range of ports on the host that the nodes of a network may use.
type PortRange struct {
	Proto       string // "tcp" or "udp"
	First, Last uint16
}

// String returns the opening in the form of a site file.
func (o PortRange) String() string {
	if o.First == o.Last {
		return fmt.Sprintf("%s/%d", o.Proto, o.First)
	}
	return fmt.Sprintf("%s/%d-%d", o.Proto, o.First, o.Last)
}

// namedPortRanges are the openings that have names.
var namedPortRanges = map[string][]PortRange{
	"dns": {{"tcp", 53, 53}, {"udp", 53, 53}},
	"all": {{"tcp", 1, 65535}, {"udp", 1, 65535}},
}

// ParsePortRanges parses the key "host" of [network.NAME], such as "dns", "all", "tcp/22" or
// "udp/6000-6007". It returns the openings sorted and without duplicates.
func ParsePortRanges(words []string) ([]PortRange, error) {
	var all []PortRange
	for _, word := range words {
		if named, ok := namedPortRanges[word]; ok {
			all = append(all, named...)
			continue
		}
		o, ok := parsePortRange(word)
		if !ok {
			return nil, fmt.Errorf("%q is not a port or a port range", word)
		}
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b PortRange) int {
		return cmp.Or(strings.Compare(a.Proto, b.Proto), cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last))
	})
	return slices.Compact(all), nil
}

func parsePortRange(word string) (PortRange, bool) {
	proto, ports, _ := strings.Cut(word, "/")
	if proto != "tcp" && proto != "udp" {
		return PortRange{}, false
	}
	from, to, isRange := strings.Cut(ports, "-")
	if !isRange {
		to = from
	}
	first, err1 := strconv.ParseUint(from, 10, 16)
	last, err2 := strconv.ParseUint(to, 10, 16)
	o := PortRange{proto, uint16(first), uint16(last)}
	plain := o.String() == word // no signs and no leading zeros
	return o, err1 == nil && err2 == nil && first > 0 && first <= last && plain
}
