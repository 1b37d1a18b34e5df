package serve

import (
	"context"
	"strconv"
	"strings"

	"orrery/internal/lab/place"
)

// Protocol names a table of sockets in /proc/net.
type Protocol string

// The protocols.
const (
	TCP Protocol = "tcp"
	UDP Protocol = "udp"
)

// listenState is the state of a socket that a peer can reach, in /proc/net/tcp and udp (proc(5),
// include/net/tcp_states.h). TCP: TCP_LISTEN. UDP: TCP_CLOSE, which means bound but not connected.
var listenState = map[Protocol]string{TCP: "0A", UDP: "07"}

// ListeningPorts returns the ports in a place on which a process listens.
func ListeningPorts(ctx context.Context, p *place.Place, protocol Protocol) (map[int]bool, error) {
	// The second file does not exist where IPv6 is disabled.
	out, err := place.Output(ctx, p, "/bin/sh", "-c", "cat /proc/net/$1; cat /proc/net/${1}6 2>/dev/null; :", "sh",
		string(protocol))
	if err != nil {
		return nil, err
	}
	return ports(string(out), listenState[protocol]), nil
}

// ports parses /proc/net/tcp, udp and their IPv6 counterparts. The second word is address:port in
// hexadecimal, the fourth is the state.
func ports(table, state string) map[int]bool {
	found := map[int]bool{}
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		if len(words) < 4 || words[3] != state {
			continue
		}
		_, hex, _ := strings.Cut(words[1], ":")
		if port, err := strconv.ParseUint(hex, 16, 16); err == nil {
			found[int(port)] = true
		}
	}
	return found
}
