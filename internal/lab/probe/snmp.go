package probe

// snmp reads /proc/net/snmp, in which a line of names comes before each line of numbers (RFC 4113
// and RFC 4022 tell what they count). Newer kernels have more of them, so they are found by name.
type snmp struct {
	file    *file
	before  map[string]uint64 // by "Udp:InErrors"
	counted bool
	key     []byte
}

// snmpFields are those that are kept.
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

// pairs takes a line of names with its line of numbers.
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
				*into = grown32(now, before) // machines of 32 bits keep them in 32
			}
			n.before[string(n.key)] = now
		}
	}
}
