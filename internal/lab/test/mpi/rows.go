package mpi

import (
	"fmt"

	"orrery/internal/lab/test"
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

func (o *Options) check(wrong test.Wrong) {
	if o.Program != "orrery" && o.Program != "imb" {
		wrong(`say "orrery" or "imb"`, "program = %q is not known", o.Program)
	}
	test.Twice("sizes", o.Sizes, wrong)
	test.Twice("collective", o.Collective, wrong)
	for _, n := range o.Sizes {
		o.checkSize("sizes", n, wrong)
	}
	for _, n := range o.Collective {
		if o.checkSize("collective", n, wrong); n%4 != 0 || n == 0 {
			wrong("give multiples of 4", "collective: allreduce sums numbers of 4 bytes, and %d is not a multiple", n)
		}
	}
	switch n := len(o.rows()); {
	case n == 0:
		wrong("leave out sizes or collective", "neither sizes nor collective has a size")
	case !(o.Time >= 0.02*float64(n) && o.Time <= 600):
		wrong("name fewer sizes, or another time", "time = %g: %d measurements take from %.2g to 600 seconds", o.Time, n, 0.02*float64(n))
	}
}

func (o *Options) checkSize(key string, n int, wrong test.Wrong) {
	if n < 0 || n > mostBytes {
		wrong(fmt.Sprintf("name sizes from 0 to %d", mostBytes), "%s: a message of %d bytes cannot be measured", key, n)
	} else if o.Program == "imb" && n&(n-1) != 0 {
		wrong("name powers of two", "%s: IMB-MPI1 measures powers of two, and %d is none", key, n)
	}
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
