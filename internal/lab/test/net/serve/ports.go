package serve

import (
	"context"
	"strconv"
	"strings"

	"orrery/internal/lab/place"
)

// Protocol is a table of sockets in /proc/net.
type Protocol string

// The protocols.
const (
	TCP Protocol = "tcp"
	UDP Protocol = "udp"
)

// waiting is the state of a socket that a peer can reach, in /proc/net/tcp and udp (proc(5),
// include/net/tcp_states.h): TCP_LISTEN for TCP; TCP_CLOSE for a UDP socket that is bound but not
// connected.
var waiting = map[Protocol]string{TCP: "0A", UDP: "07"}

// Taken returns the ports of a place on which somebody listens.
func Taken(ctx context.Context, p *place.Place, protocol Protocol) (map[int]bool, error) {
	// There is no second file where IPv6 is off.
	out, err := place.Output(ctx, p, "/bin/sh", "-c", "cat /proc/net/$1; cat /proc/net/${1}6 2>/dev/null; :", "sh",
		string(protocol))
	if err != nil {
		return nil, err
	}
	return ports(string(out), waiting[protocol]), nil
}

// ports reads /proc/net/tcp, udp and their IPv6 siblings: the second word is address:port in
// hexadecimal, the fourth the state.
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
