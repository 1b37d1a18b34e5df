package network

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"orrery/internal/host"
	"orrery/internal/network/ports"
	"orrery/internal/waits"
)

// A portChange changes what the table of ports holds, and may ask for the bridges of this host. It fails before it has
// changed anything, or not at all.
type portChange func(g *ports.Table, all func() ([]bridge, error)) error

// A portQueue makes changes of the table of ports. Those that this process asks for while another one is made are made
// together: each transaction reads the whole table, and the kernel ends none before all processors have let go of the
// former rules. So nodes that start at once wait for two of them, and not for one each.
type portQueue struct {
	turn    chan struct{} // has one element while changes are made
	mutex   sync.Mutex
	waiting []*queuedChange
}

type queuedChange struct {
	make  portChange
	ports int        // that it changes
	done  chan error // buffered
}

// maxPortsTogether bounds the ports of changes that are made together: the kernel takes a transaction in one message.
const maxPortsTogether = 256

var portChanges = portQueue{turn: make(chan struct{}, 1)}

// do makes a change of some ports, together with those of others, and returns when it is made. It returns early if ctx ends.
func (q *portQueue) do(ctx context.Context, ports int, change portChange) error {
	c := &queuedChange{make: change, ports: ports, done: make(chan error, 1)}
	q.mutex.Lock()
	q.waiting = append(q.waiting, c)
	q.mutex.Unlock()
	defer q.withdraw(c)
	var made error
	ours := false
	err := waits.For(ctx, lockName, func() (waits.Held, error) {
		select {
		case made = <-c.done:
		case q.turn <- struct{}{}:
			ours = true
		default:
			return func() string { return host.HeldBy(lockPath) }, nil
		}
		return nil, nil
	})
	if err != nil || !ours {
		return cmp.Or(err, made)
	}
	defer func() { <-q.turn }()
	if !q.waits(c) { // it was made in the turn of another one
		return <-c.done
	}
	unlock, err := lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for q.waits(c) {
		q.makeSome()
	}
	return <-c.done
}

// makeSome makes the changes that have waited longest, as many as fit into one transaction.
func (q *portQueue) makeSome() {
	some := q.next()
	failed := make([]error, len(some))
	g, err := ports.Open()
	if err == nil {
		existing := sync.OnceValues(bridges)
		for i, c := range some {
			failed[i] = c.make(g, existing)
		}
		err = g.Commit()
	}
	for i, c := range some {
		c.done <- cmp.Or(failed[i], err)
	}
}

// next takes them from those that wait.
func (q *portQueue) next() []*queuedChange {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	count, ports := 0, 0
	for _, c := range q.waiting {
		if ports += c.ports; count > 0 && ports > maxPortsTogether {
			break
		}
		count++
	}
	some := q.waiting[:count:count]
	q.waiting = slices.Clone(q.waiting[count:])
	return some
}

func (q *portQueue) waits(c *queuedChange) bool {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return slices.Contains(q.waiting, c)
}

// withdraw takes back a change that has not been made.
func (q *portQueue) withdraw(c *queuedChange) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.waiting = slices.DeleteFunc(q.waiting, func(other *queuedChange) bool { return other == c })
}
