package mpi

import (
	"fmt"
	"slices"
	"strings"

	"orrery/internal/lab/test"
)

// The benchmarks, with the names of orrery-mpi.
const (
	pingpong  = "pingpong"
	sendrecv  = "sendrecv"
	exchange  = "exchange"
	bcast     = "bcast"
	reduce    = "reduce"
	allreduce = "allreduce"
	allgather = "allgather"
	alltoall  = "alltoall"
)

// benchmarks lists all benchmarks in the order of the table. All except PingPong involve all ranks
// and have the sizes of Options.Collective.
var benchmarks = []string{pingpong, sendrecv, exchange, bcast, reduce, allreduce, allgather, alltoall}

// A row is one benchmark with messages of one size.
type row struct {
	benchmark string
	bytes     int
}

// large is the message size above which PingPong reports bandwidth instead of latency: such a
// message does not fit into a page.
const large = 4 << 10

// maxRanks limits the ranks of a trial, as orrery-mpi does.
const maxRanks = 64

// maxBytes is the largest message for which orrery-mpi has memory.
const maxBytes = 1 << 28

func (o Options) rows() []row {
	var all []row
	for _, benchmark := range benchmarks {
		sizes := o.Collective
		if benchmark == pingpong {
			sizes = o.Sizes
		}
		if !slices.Contains(o.Benchmarks, benchmark) {
			continue
		}
		for _, n := range sizes {
			all = append(all, row{benchmark, n})
		}
	}
	return all
}

func (o *Options) check(wrong test.MistakeFunc) {
	if o.Program != "orrery" && o.Program != "imb" {
		wrong(`write "orrery" or "imb"`, "program = %q is unknown", o.Program)
	}
	if o.Ranks < 2 || o.Ranks > maxRanks || o.Ranks%2 != 0 {
		wrong(fmt.Sprintf("write an even number from 2 to %d: half of the ranks are at each end", maxRanks), "ranks = %d", o.Ranks)
	}
	for _, name := range o.Benchmarks {
		if !slices.Contains(benchmarks, name) {
			wrong("known: "+strings.Join(benchmarks, ", "), "benchmarks: %q is unknown", name)
		}
	}
	if o.Program == "imb" && o.Ranks > 2 && slices.Contains(o.Benchmarks, pingpong) {
		wrong(`write others in benchmarks, such as "alltoall"`,
			"ranks = %d: PingPong of IMB-MPI1 uses ranks 0 and 1, which would both be at this end", o.Ranks)
	}
	test.CheckDuplicates("benchmarks", o.Benchmarks, wrong)
	test.CheckDuplicates("sizes", o.Sizes, wrong)
	test.CheckDuplicates("collective", o.Collective, wrong)
	for _, n := range o.Sizes {
		o.checkSize("sizes", n, wrong)
	}
	for _, n := range o.Collective {
		if o.checkSize("collective", n, wrong); n%4 != 0 || n == 0 {
			wrong("write multiples of 4", "collective: reduce and allreduce sum numbers of 4 bytes, and %d is not a multiple", n)
		}
	}
	switch n := len(o.rows()); {
	case n == 0:
		wrong("remove sizes, collective or benchmarks",
			"there is nothing to measure: neither sizes nor collective has a size of the benchmarks")
	case !(o.Time >= 0.02*float64(n) && o.Time <= 600):
		wrong("write fewer sizes, or a different time", "time = %g: %d measurements take from %.2g to 600 seconds", o.Time, n,
			0.02*float64(n))
	}
}

func (o *Options) checkSize(key string, n int, wrong test.MistakeFunc) {
	if n < 0 || n > maxBytes {
		wrong(fmt.Sprintf("write sizes from 0 to %d", maxBytes), "%s: a message of %d bytes cannot be measured", key, n)
	} else if o.Program == "imb" && n&(n-1) != 0 {
		wrong("write powers of two", "%s: IMB-MPI1 measures powers of two, and %d is not one", key, n)
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

// value returns the figure for a message that took the given time.
func (r row) value(seconds float64) float64 {
	if r.bandwidth() {
		return float64(r.bytes) / seconds
	}
	return seconds
}

// size returns a number of bytes with a unit, such as 64 KiB.
func size(n int) string {
	switch {
	case n > 0 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n > 0 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}
