package mpi

import (
	"fmt"
	"strconv"

	"orrery/internal/lab/test"
	"orrery/internal/problem"
)

// orrery is Orrery's own program.
type orrery struct{}

// A Line is a line of orrery-mpi's output: a measurement or, without a benchmark, the network
// payload.
type Line struct {
	Benchmark string  `json:"benchmark"`
	Bytes     int     `json:"bytes"`
	Min       float64 `json:"min"` // seconds, of the batches
	Median    float64 `json:"median"`
	Max       float64 `json:"max"`
	Batches   int     `json:"batches"`
	Reps      int     `json:"reps"` // per batch

	Sent     uint64 `json:"sent,omitempty"` // payload bytes, by rank 0
	Received uint64 `json:"received,omitempty"`
}

func (orrery) name() string { return programName }

func (orrery) args(rows []row, seconds float64) []string {
	args := []string{strconv.FormatFloat(seconds, 'g', -1, 64)}
	for _, r := range rows {
		args = append(args, fmt.Sprintf("%s:%d", r.benchmark, r.bytes))
	}
	return args
}

// parse parses the output. The figure is the median of the batches. The minimum is stored beside
// it.
func (orrery) parse(out []byte) (measured, error) {
	m := measured{seconds: map[row]float64{}}
	var lines []Line
	whole := false // the final line was found
	err := test.JSONLines(out, func(l Line) error {
		switch {
		case l.Benchmark == "":
			m.sent, m.received, whole = l.Sent, l.Received, true
			return nil
		case !(l.Min > 0 && l.Min <= l.Median && l.Median <= l.Max) || l.Batches < 1:
			return fmt.Errorf("%g, %g and %g are not minimum, median and maximum", l.Min, l.Median, l.Max)
		}
		lines = append(lines, l)
		m.seconds[row{l.Benchmark, l.Bytes}] = l.Median
		return nil
	})
	if err != nil {
		return m, broken("%v", err)
	}
	if !whole {
		return m, broken("it ends early, after %d measurements", len(lines))
	}
	m.detail = lines
	return m, nil
}

func broken(format string, args ...any) error {
	return problem.New(problem.Failed, "output of "+programName+": "+format, args...).
		Try("see mpi.txt of this trial in the bundle")
}
