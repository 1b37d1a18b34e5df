package apply

import (
	"context"
	"errors"
	"io"
	"sync"

	"orrery/internal/plan"
	"orrery/internal/problem"
)

// A haul is what is known of nodes that move in one run.
type haul struct {
	mutex sync.Mutex
	sent  map[string]string // sums of what was sent of nodes that stand still,
	given map[string]string // and of those that were given
}

// A hauler is a host that does steps which take another one, too.
type hauler struct {
	*Steered
	fleet *Fleet
	haul  *haul
}

// Do does one step.
func (h hauler) Do(ctx context.Context, s *plan.Step, say func(string)) error {
	as := *s
	switch s.Kind {
	case plan.CopyNode, plan.SendNode:
		sum, err := h.fleet.haul(ctx, s, say)
		if err == nil && s.Kind == plan.SendNode {
			h.haul.put(h.haul.sent, s.Subject, sum)
		}
		return err
	case plan.GiveNode:
		as.Sum = h.haul.get(h.haul.sent, s.Subject)
		err := h.Steered.Do(ctx, &as, say)
		if err == nil {
			h.haul.put(h.haul.given, s.Subject, as.Sum)
		}
		return err
	case plan.ReceiveNode: // by the word of the host that has given it: in this run, or as it was seen before
		if sum := h.haul.get(h.haul.given, s.Subject); sum != "" {
			as.Sum = sum
		}
		return h.Steered.Do(ctx, &as, say)
	}
	return h.Steered.Do(ctx, s, say)
}

func (h *haul) put(into map[string]string, node, sum string) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	into[node] = sum
}

func (h *haul) get(from map[string]string, node string) string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return from[node]
}

// A both is a stream of which the two directions are apart.
type both struct {
	io.Reader
	io.Writer
}

// haul lets one host send to another what a node has written. It goes through here.
func (f *Fleet) haul(ctx context.Context, s *plan.Step, say func(string)) (sum string, err error) {
	from, known := f.Host(s.Peer)
	to, both2 := f.Host(s.Host)
	if !known || !both2 {
		return "", problem.New(problem.Failed, "nobody works on hosts %s and %s", s.Peer, s.Host)
	}
	there, sent := io.Pipe()
	here, answered := io.Pipe()
	end := func(why error) {
		for _, half := range []*io.PipeWriter{sent, answered} {
			half.CloseWithError(why) //nolint:errcheck // it gives none
		}
		for _, half := range []*io.PipeReader{there, here} {
			half.CloseWithError(why) //nolint:errcheck // it gives none
		}
	}
	defer context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })()
	received := make(chan error, 1)
	go func() {
		err := to.Receive(ctx, s, both{there, answered})
		if err != nil {
			end(errNotTaken)
		}
		answered.Close() //nolint:errcheck // it gives none
		received <- err
	}()
	sum, err = from.Send(ctx, s, both{here, sent}, say)
	if err != nil {
		end(errNotSent)
	}
	sent.Close() //nolint:errcheck // it gives none
	bad := <-received
	if bad != nil && (err == nil || !errors.Is(bad, errNotSent)) {
		return "", bad
	}
	return sum, err
}

var (
	errNotTaken = errors.New("the other host takes no more")
	errNotSent  = errors.New("the other host sends no more")
)
