package probe

// snmp reads /proc/net/snmp, in which a line of names precedes each line of numbers (described in
// RFC 4113 and RFC 4022). Newer kernels have more numbers, so they are looked up by name.
type snmp struct {
	file    *file
	before  map[string]uint64 // by names such as "Udp:InErrors"
	counted bool
	key     []byte
}

// snmpFields returns the field for a counter, or nil if the counter is not recorded.
func snmpFields(s *Second, key []byte) *uint64 {
	switch string(key) {
	case "Udp:InDatagrams":
		return &s.UDP.Received
	case "Udp:OutDatagrams":
		return &s.UDP.Sent
	case "Udp:NoPorts":
		return &s.UDP.NoPort
	case "Udp:InErrors":
		return &s.UDP.Errors
	case "Udp:RcvbufErrors":
		return &s.UDP.FullReceive
	case "Udp:SndbufErrors":
		return &s.UDP.FullSend
	case "Udp:InCsumErrors":
		return &s.UDP.Checksum
	case "Udp:MemErrors":
		return &s.UDP.Memory
	case "Tcp:InSegs":
		return &s.TCP.Received
	case "Tcp:OutSegs":
		return &s.TCP.Sent
	case "Tcp:RetransSegs":
		return &s.TCP.Resent
	case "Tcp:InErrs":
		return &s.TCP.Errors
	}
	return nil
}

func (n *snmp) sample(s *Second) {
	text := n.file.read()
	known := n.counted
	n.counted = len(text) > 0
	if n.before == nil {
		n.before = map[string]uint64{}
	}
	for len(text) > 0 {
		var names, values []byte
		names, text = line(text)
		values, text = line(text)
		protocol, names := word(names)
		if p := string(protocol); p != "Udp:" && p != "Tcp:" {
			continue
		}
		_, values = word(values)
		n.pairs(s, protocol, names, values, known)
	}
}

// pairs parses a line of names with its line of numbers.
func (n *snmp) pairs(s *Second, protocol, names, values []byte, known bool) {
	for {
		var name, value []byte
		name, names = word(names)
		value, values = word(values)
		if len(name) == 0 || len(value) == 0 {
			return
		}
		n.key = append(append(n.key[:0], protocol...), name...)
		into := snmpFields(s, n.key)
		if into == nil {
			continue
		}
		now := number(value)
		if before := n.before[string(n.key)]; now != before {
			if known {
				*into = increase32(now, before) // 32-bit machines keep the counters in 32 bits
			}
			n.before[string(n.key)] = now
		}
	}
}
