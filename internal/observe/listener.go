package observe

import (
	"net/netip"

	"orrery/internal/site"
)

// A Listener is a socket of a program of the host that receives connections or packets of other
// machines. Sockets on loopback are not Listeners.
type Listener struct {
	Proto   string     `json:"proto"` // "tcp" or "udp"
	Address netip.Addr `json:"address"`
	Port    uint16     `json:"port"`
}

// Meets reports whether ports that lead to a node would take packets away from the program.
func (l Listener) Meets(p site.Publish) bool {
	here := l.Address.Unmap()
	if l.Proto != p.Ports.Proto || l.Port < p.Ports.First || l.Port > p.Ports.Last {
		return false
	}
	// A socket at :: usually receives IPv4, too, and nothing shows whether it does.
	return here.IsUnspecified() || here.Is4() && (!p.Address.IsValid() || here == p.Address)
}
