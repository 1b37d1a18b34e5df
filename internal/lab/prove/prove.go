package prove

import (
	"context"
	"errors"
	"time"

	"orrery/internal/host"
)

// Options say how limits are proven.
type Options struct {
	Rounds  int
	Seconds float64 // of each round
	Dir     string  // directory on the disk of the nodes
	Begin   func(node string, l Limit)
}

// Node proves the limits of a node, one after the other. All has the nodes of this host, in the order
// of the site file; the next one bears the same load beside it. Node returns an error only if ctx ends.
func Node(ctx context.Context, o Options, all []*Target, t *Target, limits []Limit) (rows []Row, err error) {
	for _, l := range limits {
		if o.Begin != nil {
			o.Begin(t.Name, l)
		}
		row := Row{Node: t.Name, Limit: l}
		if err := o.one(ctx, all, t, &row); err != nil {
			if ctx.Err() != nil {
				return rows, ctx.Err()
			}
			row.untold("%v", err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// one proves a limit. An error says why it cannot be told.
func (o Options) one(ctx context.Context, all []*Target, t *Target, row *Row) error {
	if why := canLoad(t, row.Limit); why != "" {
		row.untold("%s", why)
		return nil
	}
	maker, without, end, err := o.maker(ctx, row.Limit)
	if err != nil {
		return err
	}
	defer end()
	loads, err := maker(t)
	if err != nil {
		return err
	}
	for i := range 2 + o.Rounds { // the first two are the A/A round
		r, err := loads.measure(ctx, o.Seconds)
		if err != nil {
			return err
		}
		if i < 2 {
			row.Again = append(row.Again, r)
		} else {
			row.Rounds = append(row.Rounds, r)
		}
	}
	row.judge(0)
	if row.Deviation < -holds && without != nil {
		n, err := without(ctx, o.Seconds)
		if err != nil {
			return err
		}
		row.judge(n)
	}
	next := Neighbour(all, t, row.Limit)
	if next == nil {
		return nil
	}
	row.Neighbour = &Beside{Node: next.Name}
	if err := row.Neighbour.measure(ctx, o.Seconds, maker, loads, next); err != nil {
		row.Neighbour.Why = err.Error()
		return ctx.Err()
	}
	return nil
}

// maker returns a function that makes the loader of a limit for a node, and one that measures the load
// without the limit, or nil. The caller calls end.
func (o Options) maker(ctx context.Context, l Limit) (maker func(*Target) (*loader, error),
	without func(context.Context, float64) (float64, error), end func(), err error) {
	switch l.Kind {
	case ToNode, FromNode:
		return func(t *Target) (*loader, error) { return trafficLoader(t, l, o.Seconds) }, nil, func() {}, nil
	case Processors:
		return func(t *Target) (*loader, error) { return cpuLoader(ctx, t, l, o.Seconds) }, nil, func() {}, nil
	}
	d, err := newDiskLoad(ctx, o.Dir, l, o.Seconds)
	if err != nil {
		return nil, nil, nil, err
	}
	return func(t *Target) (*loader, error) { return d.loader(ctx, t, l), nil }, d.without,
		func() { _ = d.file.Close() }, nil
}

// measure measures the same load on the next node, alone and while the first one is at its limit.
func (b *Beside) measure(ctx context.Context, seconds float64, maker func(*Target) (*loader, error), first *loader,
	next *Target) (err error) {
	loads, err := maker(next)
	if err != nil {
		return err
	}
	alone, err := loads.measure(ctx, seconds)
	if err != nil {
		return err
	}
	pressing, err := first.start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pressing.end()) }()
	if err := host.Sleep(ctx, first.settle); err != nil {
		return err
	}
	beside, err := loads.measure(ctx, seconds)
	if err != nil {
		return err
	}
	b.Alone, b.Beside = alone.Rate, beside.Rate
	if b.Alone > 0 {
		b.Ratio = b.Beside / b.Alone
	}
	return pressing.err()
}

// A Report has the proofs of a site's limits.
type Report struct {
	Site    string    `json:"site"`
	Host    string    `json:"host"`
	At      time.Time `json:"at"`
	Rounds  int       `json:"rounds"`
	Seconds float64   `json:"seconds"`
	Rows    []Row     `json:"rows"`
}

// Untell returns the rows of limits that cannot be told, all for the same reason.
func Untell(node string, limits []Limit, why string) (rows []Row) {
	for _, l := range limits {
		row := Row{Node: node, Limit: l}
		row.untold("%s", why)
		rows = append(rows, row)
	}
	return rows
}

// Count returns how many rows have one of some verdicts.
func (r *Report) Count(some ...Verdict) (n int) {
	for i := range r.Rows {
		for _, v := range some {
			if r.Rows[i].Verdict == v {
				n++
			}
		}
	}
	return n
}
