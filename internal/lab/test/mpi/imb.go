package mpi

import (
	"bufio"
	"bytes"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/problem"
)

// imb is Intel's IMB-MPI1, if the user's image has it.
type imb struct{ ranks int }

// imbNames maps Intel's names of the benchmarks to those of orrery-mpi.
var imbNames = map[string]string{"PingPong": pingpong, "Sendrecv": sendrecv, "Exchange": exchange, "Bcast": bcast,
	"Reduce":    reduce,
	"Allreduce": allreduce, "Allgather": allgather, "Alltoall": alltoall}

// An IMBLine is a line of one of IMB's tables.
type IMBLine struct {
	Benchmark   string `json:"benchmark"`
	Bytes       int    `json:"bytes"`
	Repetitions int    `json:"repetitions"`
	// t[usec] of PingPong, which is half of a round trip; t_max[usec] of the others, as orrery-mpi
	// reports it
	Seconds float64 `json:"seconds"`
}

func (imb) name() string { return "IMB-MPI1" }

// args returns the arguments for the benchmarks of the rows ("Intel MPI Benchmarks User Guide",
// command-line control). -time limits the duration of each size of a benchmark.
func (i imb) args(rows []row, seconds float64) []string {
	var args []string
	least, most := 63, 0
	for _, benchmark := range benchmarks {
		if !slices.ContainsFunc(rows, func(r row) bool { return r.benchmark == benchmark }) {
			continue
		}
		for name, ours := range imbNames {
			if ours == benchmark {
				args = append(args, name)
			}
		}
	}
	for _, r := range rows {
		if r.bytes > 0 { // IMB always measures 0 bytes
			least = min(least, bits.Len(uint(r.bytes))-1)
			most = max(most, bits.Len(uint(r.bytes))-1)
		}
	}
	least = min(least, most)
	each := seconds / float64(len(args)*(most-least+2))
	return append(args, "-npmin", strconv.Itoa(i.ranks), "-msglog", fmt.Sprintf("%d:%d", least, most), "-time",
		strconv.FormatFloat(each, 'g', 3, 64))
}

// parse parses the tables. Each begins with "# Benchmarking NAME" and has a line of column names
// before its numbers ("Intel MPI Benchmarks User Guide", sample outputs).
func (i imb) parse(out []byte) (measured, error) {
	m := measured{seconds: map[row]float64{}}
	var lines []IMBLine
	benchmark, columns := "", []string(nil)
	scan := bufio.NewScanner(bytes.NewReader(out))
	for n := 1; scan.Scan(); n++ {
		text := strings.TrimSpace(scan.Text())
		switch {
		case strings.HasPrefix(text, "# Benchmarking "):
			benchmark, columns = imbNames[strings.TrimSpace(strings.TrimPrefix(text, "# Benchmarking "))], nil
		case strings.HasPrefix(text, "#bytes"):
			columns = strings.Fields(text)
		case text == "" || strings.HasPrefix(text, "#") || benchmark == "":
		case columns == nil:
			return m, imbBroken(n, text, "numbers without column names")
		default:
			l, err := imbLine(benchmark, columns, strings.Fields(text))
			if err != nil {
				return m, imbBroken(n, text, err.Error())
			}
			lines = append(lines, l)
			m.add(l, i.ranks/2)
		}
	}
	if len(lines) == 0 {
		return m, problem.New(problem.Failed, "IMB-MPI1 printed no table").Try("see mpi.txt of this trial in the bundle")
	}
	m.detail = lines
	return m, nil
}

func imbLine(benchmark string, columns, values []string) (IMBLine, error) {
	l := IMBLine{Benchmark: benchmark}
	if len(values) != len(columns) {
		return l, fmt.Errorf("%d values for %d columns", len(values), len(columns))
	}
	number := map[string]float64{}
	for i, c := range columns {
		v, err := strconv.ParseFloat(values[i], 64)
		if err != nil {
			return l, fmt.Errorf("%s is not a number", c)
		}
		number[c] = v
	}
	l.Bytes, l.Repetitions = int(number["#bytes"]), int(number["#repetitions"])
	usec, ok := number["t[usec]"]
	if !ok {
		usec, ok = number["t_max[usec]"]
	}
	if !ok || l.Repetitions < 1 || l.Bytes < 0 {
		return l, fmt.Errorf("#repetitions, t[usec] or t_max[usec] is missing")
	}
	l.Seconds = usec / 1e6
	return l, nil
}

// add adds a line, and the least payload that its repetitions moved between the two ends, whatever
// the algorithm (see orrery-mpi.c). Half of the ranks are at each end. The root of Bcast and Reduce
// rotates among the ranks, so each end has it half of the time, except for an incomplete last turn.
func (m *measured) add(l IMBLine, half int) {
	m.seconds[row{l.Benchmark, l.Bytes}] = l.Seconds
	times, each := uint64(l.Repetitions),
		uint64(max(1, half)) //nolint:gosec // imbLine wants one or more, and half is an option
	switch l.Benchmark {
	case bcast, reduce:
		times = times / (2 * each) * each
	case exchange:
		times *= 2
	case allgather:
		times *= each
	case alltoall:
		times *= each * each
	}
	moved := uint64(l.Bytes) * times
	m.sent += moved
	m.received += moved
}

func imbBroken(n int, text, why string) error {
	return problem.New(problem.Failed, "output of IMB-MPI1: line %d, %.60q: %s", n, text, why).
		Try("see mpi.txt of this trial in the bundle")
}
