package capture

import (
	"context"
	"fmt"
	"math"
	"time"

	"orrery/internal/lab/probe"
	"orrery/internal/lab/search"
	"orrery/internal/lab/test"
	"orrery/internal/problem"
)

// above is how much more than the lossless rate the paper's way begins with: all of it, from a full
// blast down, would take hundreds of trials.
const above = 1.05

// idleTime is how long the host is watched before the first trial: what it does then is not the test's.
const idleTime = 200 * time.Millisecond

// minTime is how long trials at the found rate must be together, for the processor time to be known:
// the kernel counts it in 10 ms.
const minTime = 500 * time.Millisecond

// Run searches for the lossless rate, and measures what it costs.
func (c *capture) Run(ctx context.Context, t *test.Trial) (test.Result, error) {
	p, err := c.open(ctx, t)
	if err != nil {
		return test.Result{}, err
	}
	defer p.close()
	if err := t.Barrier(ctx); err != nil {
		return test.Result{}, err
	}
	r := &run{capture: c, trial: t, pair: p}
	if err := r.begin(ctx); err != nil {
		return test.Result{}, err
	}
	key := fmt.Sprintf("%s %d of %d", t.Near.Name, t.Copy, t.Of)
	before, _ := c.last.Load(key)
	begin, _ := before.(float64)
	found, err := search.MLR(ctx, c.search(begin), r.in("search"))
	if err != nil {
		return test.Result{}, err
	}
	if found.Rate <= 0 {
		return test.Result{}, problem.New(problem.Failed, "no rate was without loss, in %d trials", found.Trials).
			At(t.Near.Name).
			Try("a larger buffer, or more trials that may be lossy")
	}
	c.last.Store(key, found.Rate)
	cost, err := r.cost(ctx, found.Rate)
	if err != nil {
		return test.Result{}, err
	}
	samples, labels := []test.Sample{{Figure: lossless, Value: found.Rate}}, r.labels(found)
	if c.Paper {
		down, err := r.stepDown(ctx, found.Rate)
		switch {
		case ctx.Err() != nil:
			return test.Result{}, context.Cause(ctx)
		case err == nil:
			samples = append(samples, test.Sample{Figure: byPaper, Value: down.Rate})
		default: // this way has no rule for a sender that is late; the search before has found a rate all the same
			labels = append(labels, test.Label{Name: atSender, Where: byPaper, Why: err.Error(),
				Cure: "a host without other load, or a lower most"})
		}
	}
	share := max(0, cost.Share()-r.idle.Share())
	busy := share * cost.Total.Seconds() / r.wall.Seconds()
	samples = append(samples, test.Sample{Figure: hostCPU, Value: share},
		test.Sample{Figure: perGbit, Value: busy / (found.Rate / 1e9)})
	return test.Result{Samples: samples, Labels: labels, Detail: r.detail(found)}, nil
}

// stepDown searches as the paper did.
func (r *run) stepDown(ctx context.Context, found float64) (search.Result, error) {
	from := min(found*above, r.fastest()*atLeastAchieved)
	if r.Most > 0 {
		from = min(from, float64(r.Most))
	}
	return search.StepDown(ctx, max(from, found), r.search(0), r.in("paper"))
}

// search returns the options of a search that begins at a rate.
func (c *capture) search(begin float64) search.Options {
	return search.Options{Trials: c.Trials, Lossy: c.Lossy, Precision: c.Precision, Least: 1e6, Most: float64(c.Most),
		Start: begin}
}

// A run is one run of the test.
type run struct {
	*capture
	trial  *test.Trial
	pair   pair
	idle   probe.CPU // while nothing was sent
	before Counters  // at the last trial that was read after
	points []Point
	wall   time.Duration // of the trials that cost counts
}

// A Point is a trial, as the bundle has it.
type Point struct {
	Search   string  `json:"search"` // which: search, paper, or cost for those that only measure processor time
	Rate     float64 `json:"rate"`   // bit/s asked; 0: as fast as it goes
	Achieved float64 `json:"achieved"`
	Goodput  float64 `json:"goodput"` // bit/s in whole heaps
	Sent     uint64  `json:"sent"`    // heaps
	Received uint64  `json:"received"`
	Valid    bool    `json:"valid"`
	Seconds  float64 `json:"seconds"`
	Late     float64 `json:"late,omitempty"` // seconds that the sender was behind its schedule at worst
	Full     uint64  `json:"full,omitempty"` // times that the sender's socket had no room
	Busy     float64 `json:"busy"`           // seconds of processors of the host
	CPU      float64 `json:"cpu"`            // part of all processors
	Died     *Died   `json:"died,omitempty"`
	used     probe.CPU
	took     time.Duration
}

// begin watches the idle host.
func (r *run) begin(ctx context.Context) (err error) {
	if r.idle, err = probe.Baseline(ctx, idleTime); err != nil {
		return err
	}
	r.before, err = count(ctx, r.trial.Near, r.trial.Far)
	return err
}

// in returns the trials of a search.
func (r *run) in(name string) search.Trial {
	return func(ctx context.Context, rate float64) (search.Outcome, error) {
		return r.once(ctx, name, rate, r.Trial)
	}
}

// atLeastAchieved is the part of the rate asked for that a sender must reach for its trial to count.
const atLeastAchieved = 0.99

func (r *run) once(ctx context.Context, name string, rate float64, length time.Duration) (search.Outcome, error) {
	cpu, err := probe.ReadCPU()
	if err != nil {
		return search.Outcome{}, err
	}
	began := time.Now()
	sent, got, err := r.pair.trial(ctx, rate, length)
	if err != nil {
		return search.Outcome{}, err
	}
	took := time.Since(began)
	after, err := probe.ReadCPU()
	if err != nil {
		return search.Outcome{}, err
	}
	used := after.Since(cpu)
	o := search.Outcome{Rate: rate, Achieved: sent.Rate, Sent: sent.Heaps, Received: got.Heaps}
	o.Valid = math.IsInf(rate, 1) || sent.Rate >= atLeastAchieved*rate
	if sent.Heaps > 0 {
		o.Goodput = sent.Rate * float64(got.Heaps) / float64(sent.Heaps)
	}
	point := Point{Search: name, Rate: rate, Achieved: o.Achieved, Goodput: o.Goodput, Sent: o.Sent,
		Received: o.Received, Valid: o.Valid,
		Seconds: sent.Seconds, Late: sent.Late, Full: sent.Full, Busy: used.Busy.Seconds(), CPU: used.Share(), used: used,
		took: took}
	if math.IsInf(rate, 1) {
		point.Rate = 0 // JSON knows no infinity
	}
	if got.Heaps != sent.Heaps {
		now, err := count(ctx, r.trial.Near, r.trial.Far)
		if err != nil {
			return o, err
		}
		inWhole := got.InWhole
		if r.Program == spead2 { // it does not say
			inWhole = got.Heaps * (sent.Packets / max(sent.Heaps, 1))
		}
		died := autopsy(sent, got, inWhole, now.since(r.before))
		point.Died, r.before = &died, now
	}
	r.points = append(r.points, point)
	return o, nil
}

// cost returns the processor time of trials at the found rate, more of them if there were too few.
func (r *run) cost(ctx context.Context, rate float64) (all probe.CPU, err error) {
	for {
		all, r.wall = probe.CPU{}, 0
		for _, p := range r.points {
			if p.Valid && math.Abs(p.Rate/rate-1) < 1e-6 {
				all.Busy, all.Total = all.Busy+p.used.Busy, all.Total+p.used.Total
				r.wall += p.took
			}
		}
		if r.wall >= minTime || len(r.points) > 1000 {
			return all, nil
		}
		if _, err := r.once(ctx, "cost", rate, max(r.Trial, minTime-r.wall)); err != nil {
			return all, err
		}
	}
}
