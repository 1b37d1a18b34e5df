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

// imbNames are Intel's names of the benchmarks.
var imbNames = map[string]string{"PingPong": pingpong, "Sendrecv": sendrecv, "Exchange": exchange, "Bcast": bcast,
	"Reduce":    reduce,
	"Allreduce": allreduce, "Allgather": allgather, "Alltoall": alltoall}

// An IMBLine is a line of one of IMB's tables.
type IMBLine struct {
	Benchmark   string `json:"benchmark"`
	Bytes       int    `json:"bytes"`
	Repetitions int    `json:"repetitions"`
	// of PingPong t[usec], half of a round trip; of others t_max[usec], as orrery-mpi tells it
	Seconds float64 `json:"seconds"`
}

func (imb) name() string { return "IMB-MPI1" }

// args ask for the tables that have the rows: "Intel MPI Benchmarks User Guide", command-line control. -time
// bounds each size of a benchmark.
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
		if r.bytes > 0 { // 0 bytes always are measured
			least = min(least, bits.Len(uint(r.bytes))-1)
			most = max(most, bits.Len(uint(r.bytes))-1)
		}
	}
	least = min(least, most)
	each := seconds / float64(len(args)*(most-least+2))
	return append(args, "-npmin", strconv.Itoa(i.ranks), "-msglog", fmt.Sprintf("%d:%d", least, most), "-time",
		strconv.FormatFloat(each, 'g', 3, 64))
}

// parse reads the tables. Each begins with "# Benchmarking NAME" and has a line of column names
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
			return m, imbBroken(n, text, "numbers without names of columns")
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
		return m, problem.New(problem.Failed, "IMB-MPI1 printed no table").Try("look at mpi.txt of this trial in the bundle")
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

// add takes a line into account, with what its repetitions moved at least from each end to the
// other, which has half of the ranks, whatever the algorithm: see orrery-mpi.c. The root of Bcast
// and Reduce is at each end half of the times, but for what is left of ranks by turns.
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
	return problem.New(problem.Failed, "what IMB-MPI1 printed: line %d, %.60q: %s", n, text, why).
		Try("look at mpi.txt of this trial in the bundle")
}
