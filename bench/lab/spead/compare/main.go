// Command compare compares SPEAD receivers, and searches, over a veth into a network namespace. It
// prints a line of JSON for each result. bench/lab/spead/run calls it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"syscall"
	"time"

	"orrery/internal/lab/search"
)

// options holds the command line.
type options struct {
	orrery, spead2 string
	namespace      string
	at             string
	heap, packet   int
	buffer         int
	trial          time.Duration
	rounds         int
}

func main() {
	var o options
	part := flag.String("part", "receivers", "receivers, accuracy or searches")
	flag.StringVar(&o.orrery, "orrery", "bin/orrery", "the `program`")
	flag.StringVar(&o.spead2, "spead2", "", "`directory` of spead2_recv")
	flag.StringVar(&o.namespace, "namespace", "", "network namespace of the receiver")
	flag.StringVar(&o.at, "at", "", "`address:port` of the receiver")
	flag.IntVar(&o.heap, "heap", 1<<20, "`bytes` of a heap")
	flag.IntVar(&o.packet, "packet", 1472, "`bytes` of a packet")
	flag.IntVar(&o.buffer, "buffer", 4<<20, "`bytes` of the receiver's buffer")
	flag.DurationVar(&o.trial, "trial", 200*time.Millisecond, "length of a trial")
	flag.IntVar(&o.rounds, "rounds", 5, "how many")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := map[string]func(context.Context, options) error{
		"receivers": receivers, "accuracy": accuracy, "searches": searches}[*part](ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// say prints a result.
func say(result map[string]any) {
	line, err := json.Marshal(result)
	if err != nil {
		panic(err) // all values are numbers and strings
	}
	fmt.Println(string(line))
}

// receivers searches for the lossless rate of each receiver in turn, in an order that is reversed
// each time.
func receivers(ctx context.Context, o options) error {
	s, err := newSender(ctx, o)
	if err != nil {
		return err
	}
	defer s.close()
	kinds := []receiver{&session{options: o}, &once{options: o, name: "orrery, started for each trial"},
		&once{options: o, name: "spead2", theirs: true}}
	start := map[receiver]float64{}
	for round := range o.rounds + 1 {
		for i := range kinds {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if round%2 == 1 {
				i = len(kinds) - 1 - i
			}
			k := kinds[i]
			found, err := search.MLR(ctx, search.Options{Start: start[k]}, s.trial(k))
			k.close() // the next one needs the port
			if err != nil {
				say(map[string]any{"part": "receivers", "round": round, "receiver": fmt.Sprint(k), "failed": err.Error()})
				continue
			}
			start[k] = found.Rate
			say(map[string]any{"part": "receivers", "round": round, "receiver": fmt.Sprint(k), "rate": found.Rate,
				"trials": found.Trials, "capped": found.Capped})
		}
	}
	return nil
}

// accuracy reports how much of the requested rate the sender reaches, with and without a receiver
// that uses processor time.
func accuracy(ctx context.Context, o options) error {
	s, err := newSender(ctx, o)
	if err != nil {
		return err
	}
	defer s.close()
	r := &session{options: o}
	defer r.close()
	for round := range o.rounds {
		for _, rate := range []float64{1e8, 1e9, 3e9, 5e9, 1e10, 1.5e10, 2e10} {
			outcome, err := s.trial(r)(ctx, rate)
			if err != nil {
				return err
			}
			say(map[string]any{"part": "accuracy", "round": round, "asked": rate, "achieved": outcome.Achieved,
				"lost": outcome.Sent - outcome.Received})
		}
	}
	return nil
}

// starts are where both searches begin, relative to the lossless rate from an earlier search. 0
// would mean the goodput of a full blast. That may be below the lossless rate, because an
// overloaded receiver receives less, and stepping down finds nothing above its start.
var starts = [...]float64{1.25, 1.5, 2}

// searches runs both searches from the same start, one after the other.
func searches(ctx context.Context, o options) error {
	s, err := newSender(ctx, o)
	if err != nil {
		return err
	}
	defer s.close()
	r := &session{options: o}
	defer r.close()
	known, err := search.MLR(ctx, search.Options{}, s.trial(r))
	if err != nil {
		return err
	}
	for round := range o.rounds {
		for _, part := range starts {
			start := part * known.Rate
			if part == 0 {
				blast, err := s.trial(r)(ctx, math.Inf(1))
				if err != nil {
					return err
				}
				start = blast.Goodput
			}
			ways := []string{"mlr", "step down"}
			if round%2 == 1 {
				ways[0], ways[1] = ways[1], ways[0]
			}
			for _, way := range ways {
				one(ctx, way, start, s.trial(r), map[string]any{"part": "searches", "round": round, "way": way, "of": part,
					"start": start})
			}
		}
	}
	return ctx.Err()
}

// one runs one search.
func one(ctx context.Context, way string, start float64, trial search.Trial, result map[string]any) {
	var found search.Result
	var err error
	if way == "mlr" {
		found, err = search.MLR(ctx, search.Options{Start: start}, trial)
	} else {
		found, err = search.StepDown(ctx, start, search.Options{}, trial)
	}
	type point struct {
		Rate  float64 `json:"rate"`
		Lost  uint64  `json:"lost"`
		Valid bool    `json:"valid"`
	}
	var curve []point
	for _, o := range found.Curve {
		curve = append(curve, point{o.Rate, o.Sent - o.Received, o.Valid})
	}
	result["curve"] = curve
	result["rate"], result["trials"], result["capped"] = found.Rate, found.Trials, found.Capped
	if err != nil {
		result["failed"] = err.Error()
	}
	say(result)
}
