package nodes

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// An answering node has a listener at one address.
type answering struct {
	host.Runner
	at      string // "" for no listener
	failure error  // of all connections
	tried   []string
}

func (l *answering) Dial(_ context.Context, _, address string) (net.Conn, error) {
	l.tried = append(l.tried, address)
	if l.failure != nil {
		return nil, l.failure
	}
	if address != l.at {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	near, far := net.Pipe()
	_ = far.Close()
	return near, nil
}

// TestDialFallsBack: a service that listens only on the node's first address is reached. If nothing
// listens, or something else fails, the error says which.
func TestDialFallsBack(t *testing.T) {
	const own, other, loop = "10.99.1.21:80", "10.99.2.21:80", "127.0.0.1:80"
	lost := problem.New(problem.Failed, "host sv2: the connection has ended")
	for what, c := range map[string]struct {
		at      string
		nics    int
		failure error
		tried   []string
		says    string
	}{
		"on loopback":         {at: loop, nics: 2, tried: []string{loop}},
		"on its only address": {at: own, nics: 1, tried: []string{loop, own}},
		"on the first of two": {at: own, nics: 2, tried: []string{loop, own}},
		"on the second of two": {at: other, nics: 2, tried: []string{loop, own},
			says: "nothing listens on port 80 of node web1"},
		"nowhere": {nics: 1, tried: []string{loop, own},
			says: "nothing listens on port 80 of node web1"},
		"nowhere, without network": {tried: []string{loop}, says: "nothing listens on port 80 of node web1"},
		"its host is lost": {nics: 1, failure: lost, tried: []string{loop},
			says: "host sv2: the connection has ended"},
		"anything else": {nics: 1, failure: errors.New("no route"), tried: []string{loop},
			says: "connect to port 80 of node web1: no route"},
	} {
		in := &answering{at: c.at, failure: c.failure}
		n := &site.Node{Name: "web1"}
		for i := range c.nics {
			n.NICs = append(n.NICs, site.NIC{Address: netip.AddrFrom4([4]byte{10, 99, byte(i + 1), 21})})
		}
		w := &NodePort{Port: "80", node: n, runner: in, lookedFor: time.Now()}
		conn, err := w.Dial(t.Context())
		if (conn != nil) != (c.says == "") || (err != nil) != (c.says != "") || err != nil &&
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v", what, conn, err)
		}
		if !slices.Equal(in.tried, c.tried) {
			t.Errorf("%s: tried is %q", what, in.tried)
		}
	}
}
