package spead

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"
	"time"

	"orrery/internal/problem"
	"orrery/internal/strict/jsonlimit"
)

// A session is a sequence of trials with one process at each end, so that a trial takes no extra
// time for starting processes. Orders are lines of standard input, answers are lines of JSON.

// An Order asks the sender of a session for a trial.
type Order struct {
	Rate    float64 `json:"rate"`    // bit/s, or 0 for full speed
	Seconds float64 `json:"seconds"` // duration of the trial
}

// The orders to the receiver of a session.
const (
	Begin = "begin" // discard what was received before; the answer is Ready
	End   = "end"   // nothing more is sent; the answer is Received, after all packets in flight have arrived
)

// Ready is the answer of a receiver that has begun.
type Ready struct {
	Ready bool `json:"ready"`
}

// Listening is the first line of a receiver.
type Listening struct {
	Listening string `json:"listening"` // address and port of the first socket
	Sockets   int    `json:"sockets"`
	Buffer    int    `json:"buffer"` // size that each socket obtained, in bytes
	GRO       bool   `json:"gro"`
}

// Listening returns how the receiver listens.
func (r *Receiver) Listening() Listening {
	return Listening{Listening: r.options.At.String(), Sockets: len(r.ends), Buffer: r.Buffer(), GRO: r.ends[0].got.GRO}
}

// Serve runs the orders until there are no more.
func (s *Sender) Serve(ctx context.Context, orders io.Reader, answers io.Writer) error {
	for line := range lines(ctx, orders) {
		var o Order
		if err := jsonlimit.Unmarshal([]byte(line), &o); err != nil || o.Rate < 0 || o.Seconds <= 0 {
			return problem.New(problem.Usage, "%q is not a valid order", line).Try(`send {"rate": 1e9, "seconds": 0.1}`)
		}
		sent, err := s.Trial(ctx, o)
		if err != nil {
			return err
		}
		s.End(1) // if it is lost, the receiver gets the order End
		if err := Answer(answers, sent); err != nil {
			return err
		}
	}
	return nil
}

// lines returns the orders, line by line, until there are no more or ctx ends. A blocked read is
// abandoned, because the process ends after its session.
func lines(ctx context.Context, orders io.Reader) iter.Seq[string] {
	return func(yield func(string) bool) {
		read := make(chan string)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			defer close(read)
			for scan := bufio.NewScanner(orders); scan.Scan(); {
				select {
				case read <- strings.TrimSpace(scan.Text()):
				case <-ctx.Done():
					return
				}
			}
		}()
		for {
			select {
			case line, ok := <-read:
				if !ok || !yield(line) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// Trial sends what an order requests. It does not end the streams; see End.
func (s *Sender) Trial(ctx context.Context, o Order) (Sent, error) {
	length := time.Duration(o.Seconds * 1e9)
	heaps := math.MaxInt32
	if o.Rate > 0 {
		heaps, length = s.HeapsFor(o.Rate, length), math.MaxInt64/4
	}
	return s.Send(ctx, heaps, length, o.Rate)
}

// Serve runs the orders until there are no more.
func (r *Receiver) Serve(ctx context.Context, orders io.Reader, answers io.Writer) error {
	trial := r.begin(ctx, nil)
	for order := range lines(ctx, orders) {
		switch order {
		case End:
			trial.end()
		case Begin:
			if err := trial.wait(); err != nil {
				return err
			}
			if err := r.Reset(); err != nil {
				return problem.New(problem.Failed, "receiving SPEAD failed").Because(err)
			}
			if err := Answer(answers, Ready{true}); err != nil {
				return err
			}
			trial = r.begin(ctx, answers)
		default:
			return problem.New(problem.Usage, "%q is not a valid order", order).Try("send %s or %s", Begin, End)
		}
	}
	return trial.wait()
}

// A trial is a running trial of a receiver.
type trial struct {
	end   context.CancelFunc // call it when nothing more is sent
	ended chan error
}

// begin starts a trial, whose result is an answer. If answers is nil, the trial has no result and
// ends at once.
func (r *Receiver) begin(ctx context.Context, answers io.Writer) trial {
	ctx, end := context.WithCancel(ctx)
	t := trial{end, make(chan error, 1)}
	go func() {
		if answers == nil {
			t.ended <- nil
			return
		}
		got, err := r.Receive(ctx, math.MaxInt64, math.MaxInt64)
		if err == nil {
			err = Answer(answers, got)
		}
		t.ended <- err
	}()
	return t
}

// wait ends the trial and waits for it.
func (t trial) wait() error {
	t.end()
	return <-t.ended
}

// Answer writes a line of JSON.
func Answer(w io.Writer, value any) error {
	line, err := json.Marshal(value)
	if err == nil {
		_, err = fmt.Fprintf(w, "%s\n", line)
	}
	return err
}

// SendOnce sends the given number of heaps or, if that is 0, what the order requests. Then it ends the
// streams.
func (s *Sender) SendOnce(ctx context.Context, heaps int, o Order) (sent Sent, err error) {
	defer s.End(EndAttempts)
	if heaps > 0 {
		return s.Send(ctx, heaps, math.MaxInt64/4, o.Rate)
	}
	return s.Trial(ctx, o)
}
