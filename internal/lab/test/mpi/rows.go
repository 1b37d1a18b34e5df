package mpi

import (
	"fmt"

	"orrery/internal/lab/test"
	"orrery/internal/problem"
)

// The benchmarks, as orrery-mpi calls them.
const (
	pingpong  = "pingpong"
	bcast     = "bcast"
	allreduce = "allreduce"
	alltoall  = "alltoall"
)

// A row is one benchmark with messages of one size.
type row struct {
	benchmark string
	bytes     int
}

// large is the size of message above which PingPong tells bandwidth instead of latency: it no longer fits into a page.
const large = 4 << 10

// mostBytes of a message are what orrery-mpi has memory for.
const mostBytes = 1 << 28

func (o Options) rows() []row {
	var all []row
	for _, n := range o.Sizes {
		all = append(all, row{pingpong, n})
	}
	for _, benchmark := range []string{bcast, allreduce, alltoall} {
		for _, n := range o.Collective {
			all = append(all, row{benchmark, n})
		}
	}
	return all
}

func (o Options) check() error {
	if o.Program != "orrery" && o.Program != "imb" {
		return problem.New(problem.Mistake, "program = %q is not known", o.Program).Try(`say "orrery" or "imb"`)
	}
	rows := o.rows()
	if len(rows) == 0 {
		return problem.New(problem.Mistake, "neither sizes nor collective has a size").Try("leave out sizes or collective")
	}
	seen := map[row]bool{}
	for _, r := range rows {
		if err := o.checkRow(r); err != nil {
			return err
		}
		if seen[r] {
			return problem.New(problem.Mistake, "the size %d is there twice", r.bytes)
		}
		seen[r] = true
	}
	if least := 0.02 * float64(len(rows)); !(o.Time >= least && o.Time <= 600) {
		return problem.New(problem.Mistake, "time = %g: %d measurements take from %.2g to 600 seconds", o.Time, len(rows), least)
	}
	return nil
}

func (o Options) checkRow(r row) error {
	switch {
	case r.bytes < 0 || r.bytes > mostBytes:
		return problem.New(problem.Mistake, "a message of %d bytes cannot be measured", r.bytes).Try("name sizes from 0 to %d", mostBytes)
	case r.benchmark == allreduce && (r.bytes%4 != 0 || r.bytes == 0):
		return problem.New(problem.Mistake, "collective: allreduce sums numbers of 4 bytes, and %d is no multiple", r.bytes)
	case r.benchmark != pingpong && r.bytes == 0:
		return problem.New(problem.Mistake, "collective: 0 bytes cannot be measured")
	case o.Program == "imb" && r.bytes&(r.bytes-1) != 0:
		return problem.New(problem.Mistake, "IMB-MPI1 measures powers of two, and %d is none", r.bytes)
	}
	return nil
}

func (r row) bandwidth() bool { return r.benchmark == pingpong && r.bytes > large }

func (r row) figure() test.Figure {
	f := test.Figure{Name: r.benchmark + " " + size(r.bytes), Unit: "s", Better: test.Less, Aggregate: test.Mean}
	switch {
	case r.bandwidth():
		f = test.Figure{Name: "pingpong bandwidth " + size(r.bytes), Unit: "B/s", Better: test.More, Aggregate: test.Sum}
	case r.benchmark == pingpong:
		f.Name = "pingpong latency " + size(r.bytes)
	}
	return f
}

// value is the figure of a message that took so many seconds.
func (r row) value(seconds float64) float64 {
	if r.bandwidth() {
		return float64(r.bytes) / seconds
	}
	return seconds
}

// size gives bytes in words, such as 64 KiB.
func size(n int) string {
	switch {
	case n > 0 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n > 0 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}
