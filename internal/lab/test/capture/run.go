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

// paperStartFactor is the factor on the lossless rate from which the paper's search starts. To step down from
// full speed would take hundreds of trials.
const paperStartFactor = 1.05

// idleTime is how long the idle host is watched before the first trial, to subtract its other work.
const idleTime = 200 * time.Millisecond

// minCostTime is the minimum total duration of trials at the found rate to measure their processor
// time: the kernel counts in units of 10 ms.
const minCostTime = 500 * time.Millisecond

// Run searches for the lossless rate and measures its cost.
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
	found, err := search.MLR(ctx, c.search(begin), r.trialsOf("search"))
	if err != nil {
		return test.Result{}, err
	}
	if found.Rate <= 0 {
		return test.Result{}, problem.New(problem.Failed, "every rate lost packets in %d trials", found.Trials).
			At(t.Near.Name).
			Try("increase buffer or lossy")
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
			samples = append(samples, test.Sample{Figure: paperRate, Value: down.Rate})
		default: // this search has no rule for a late sender, but the search before it has found a rate
			labels = append(labels, test.Label{Name: atSender, Where: paperRate, Why: err.Error(),
				Cure: "use a host without other load, or set a lower most"})
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
	from := min(found*paperStartFactor, r.fastest()*minAchievedShare)
	if r.Most > 0 {
		from = min(from, float64(r.Most))
	}
	return search.StepDown(ctx, max(from, found), r.search(0), r.trialsOf("paper"))
}

// search returns the options of a search that starts at the given rate.
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
	before Counters  // after the last trial for which the counters were read
	points []Point
	wall   time.Duration // of the trials that cost counts
}

// A Point is a trial, as stored in the bundle.
type Point struct {
	Search   string  `json:"search"` // search, paper, or cost for trials that only measure processor time
	Rate     float64 `json:"rate"`   // requested bit/s, or 0 for full speed
	Achieved float64 `json:"achieved"`
	Goodput  float64 `json:"goodput"` // bit/s in complete heaps
	Sent     uint64  `json:"sent"`    // heaps
	Received uint64  `json:"received"`
	Valid    bool    `json:"valid"`
	Seconds  float64 `json:"seconds"`
	Late     float64 `json:"late,omitempty"` // seconds by which the sender was behind its schedule at worst
	Full     uint64  `json:"full,omitempty"` // how often the sender's socket had no room
	Busy     float64 `json:"busy"`           // processor seconds of the host
	CPU      float64 `json:"cpu"`            // busy share of all processors
	Drops    *Drops  `json:"died,omitempty"`
	used     probe.CPU
	took     time.Duration
}

// begin measures the idle host.
func (r *run) begin(ctx context.Context) (err error) {
	if r.idle, err = probe.Baseline(ctx, idleTime); err != nil {
		return err
	}
	r.before, err = readCounters(ctx, r.trial.Near, r.trial.Far)
	return err
}

// trialsOf returns a function that runs the trials of the named search.
func (r *run) trialsOf(name string) search.Trial {
	return func(ctx context.Context, rate float64) (search.Outcome, error) {
		return r.runTrial(ctx, name, rate, r.Trial)
	}
}

// minAchievedShare is the share of the requested rate that the sender must reach for a trial to
// count.
const minAchievedShare = 0.99

func (r *run) runTrial(ctx context.Context, name string, rate float64, length time.Duration) (search.Outcome, error) {
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
	o.Valid = math.IsInf(rate, 1) || sent.Rate >= minAchievedShare*rate
	if sent.Heaps > 0 {
		o.Goodput = sent.Rate * float64(got.Heaps) / float64(sent.Heaps)
	}
	point := Point{Search: name, Rate: rate, Achieved: o.Achieved, Goodput: o.Goodput, Sent: o.Sent,
		Received: o.Received, Valid: o.Valid,
		Seconds: sent.Seconds, Late: sent.Late, Full: sent.Full, Busy: used.Busy.Seconds(), CPU: used.Share(), used: used,
		took: took}
	if math.IsInf(rate, 1) {
		point.Rate = 0 // JSON has no infinity
	}
	if got.Heaps != sent.Heaps {
		now, err := readCounters(ctx, r.trial.Near, r.trial.Far)
		if err != nil {
			return o, err
		}
		inWhole := got.InWhole
		if r.Program == spead2 { // spead2 does not report it
			inWhole = got.Heaps * (sent.Packets / max(sent.Heaps, 1))
		}
		died := locateDrops(sent, got, inWhole, now.since(r.before))
		point.Drops, r.before = &died, now
	}
	r.points = append(r.points, point)
	return o, nil
}

// cost returns the processor time of the trials at the found rate. It runs more trials if they were
// too short.
func (r *run) cost(ctx context.Context, rate float64) (all probe.CPU, err error) {
	for {
		all, r.wall = probe.CPU{}, 0
		for _, p := range r.points {
			if p.Valid && math.Abs(p.Rate/rate-1) < 1e-6 {
				all.Busy, all.Total = all.Busy+p.used.Busy, all.Total+p.used.Total
				r.wall += p.took
			}
		}
		if r.wall >= minCostTime || len(r.points) > 1000 {
			return all, nil
		}
		if _, err := r.runTrial(ctx, "cost", rate, max(r.Trial, minCostTime-r.wall)); err != nil {
			return all, err
		}
	}
}
