package apply

import (
	"context"
	"sync"
	"time"

	"orrery/internal/host"
	"orrery/internal/plan"
)

// nodeMoves are the nodes that move in one run.
type nodeMoves struct {
	mutex sync.Mutex
	sent  map[int]string // digests of what was sent of frozen nodes, by node id
	given map[int]string // digests of nodes that were handed over, by node id
	// pairs of hosts that cannot reach each other: no direct connection is tried again while a node
	// is frozen
	apart map[[2]string]bool
}

// A moveWorker is a host that also does steps that involve a second host.
type moveWorker struct {
	*HostClient
	fleet *Fleet
	moves *nodeMoves
}

// Do does one step.
func (h moveWorker) Do(ctx context.Context, s *plan.Step, say func(string)) error {
	if err := h.fleet.recordOwner(ctx, h.HostClient); err != nil {
		return err
	}
	as := *s
	switch s.Kind {
	case plan.CopyNode, plan.SendNode:
		sum, err := h.send(ctx, s, say)
		if err == nil && s.Kind == plan.SendNode {
			put(h.moves, h.moves.sent, s.Old.ID, sum)
		}
		return err
	case plan.HandOverNode:
		as.Digest = get(h.moves, h.moves.sent, s.Old.ID)
		err := h.HostClient.Do(ctx, &as, say)
		if err == nil {
			put(h.moves, h.moves.given, s.Old.ID, as.Digest)
		}
		return err
	// the digest comes from the host that handed the node over, in this run or as it was observed
	// before
	case plan.ReceiveNode:
		if sum := get(h.moves, h.moves.given, s.Old.ID); sum != "" {
			as.Digest = sum
		}
		return h.HostClient.Do(ctx, &as, say)
	}
	return h.HostClient.Do(ctx, s, say)
}

func put[K comparable, V any](h *nodeMoves, into map[K]V, what K, value V) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	into[what] = value
}

func get[K comparable, V any](h *nodeMoves, from map[K]V, what K) V {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return from[what]
}

// maxTransfers is how often a transfer is attempted whose connection is cut.
const maxTransfers = 4

// transferPause is the time between two attempts. A variable, so that tests can change it.
var transferPause = 2 * time.Second

// send makes one host send another what a node has written. It returns the digest of all data that
// the receiving host then has. If the connection is cut, the transfer continues from what has
// arrived.
func (h moveWorker) send(ctx context.Context, s *plan.Step, say func(string)) (string, error) {
	text, err := plan.Encode(s)
	if err != nil {
		return "", err
	}
	pair := [2]string{s.Peer, s.Host}
	for n := 1; ; n++ {
		c := pairTransfer{transfer: Transfer{Node: &NodeTransfer{Step: text}}, from: s.Peer, to: s.Host, say: say,
			apart: get(h.moves, h.moves.apart, pair)}
		err = c.run(ctx, h.fleet)
		if c.apart {
			put(h.moves, h.moves.apart, pair, true)
		}
		if !c.cut || n == maxTransfers || host.Sleep(ctx, transferPause) != nil {
			return c.sum, err
		}
		say(err.Error() + "; continuing")
	}
}
