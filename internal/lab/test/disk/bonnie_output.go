package disk

import (
	"strconv"
	"strings"

	"orrery/internal/problem"
)

// A column of bonnie++'s CSV.
type column struct {
	index  int // from 0
	figure string
	unit   string
	factor float64
}

// The columns of format 1.98 (bon_csv2html(1)), which bonnie++ 1.98, 2.00 and 2.00a use (Debian 11
// and 12). Rates of blocks are in KiB/s, seeks and files in 1/s. The column after each is the
// processor's share.
var (
	characterColumns = []column{{9, "character write", bytesPerSecond, 1024}, {15, "character read", bytesPerSecond, 1024}}
	blockColumns     = []column{
		{11, "block write", bytesPerSecond, 1024}, {13, "block rewrite", bytesPerSecond, 1024},
		{17, "block read", bytesPerSecond, 1024},
		{19, "seeks", perSecond, 1},
	}
	fileColumns = []column{
		{26, "create sequential", perSecond, 1}, {28, "stat sequential", perSecond, 1},
		{30, "delete sequential", perSecond, 1},
		{32, "create random", perSecond, 1}, {34, "stat random", perSecond, 1}, {36, "delete random", perSecond, 1},
	}
)

// columnsOf198 is the number of columns in this format.
const columnsOf198 = 50

// bonnieMarks holds the results of bonnie++.
type bonnieMarks struct {
	version string
	rates   map[string]float64 // by figure
	fast    []string           // figures for which bonnie++ printed "+++++" instead of a rate
}

// parseBonnie parses the line that bonnie++ -q prints.
func parseBonnie(text string, columns []column) (*bonnieMarks, error) {
	line, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	words := strings.Split(line, ",")
	if rest != "" || len(words) < 2 || words[0] != "1.98" {
		return nil, problem.New(problem.Failed, "the output of bonnie++ is not one line of CSV in format 1.98: %.60q", text).
			Try("the lab supports the output of bonnie++ 1.98, 2.00 and 2.00a with -q")
	}
	if len(words) != columnsOf198 {
		return nil, problem.New(problem.Failed, "the output of bonnie++ has %d columns instead of %d", len(words),
			columnsOf198).Try("check whether it was killed")
	}
	m := &bonnieMarks{version: words[1], rates: map[string]float64{}}
	for _, c := range columns {
		word := words[c.index]
		if strings.HasPrefix(word, "+") {
			m.fast = append(m.fast, c.figure)
			continue
		}
		n, err := strconv.ParseFloat(word, 64)
		if err != nil || n <= 0 {
			return nil, problem.New(problem.Failed, "the output of bonnie++ has %q for %s in column %d", word, c.figure,
				c.index+1)
		}
		m.rates[c.figure] = n * c.factor
	}
	if len(m.rates) == 0 {
		return nil, &fastError{problem.New(problem.Failed,
			"bonnie++ did everything too fast to report a rate").Try("increase size")}
	}
	return m, nil
}

// A fastError means that bonnie++ printed no rate because a phase was too short.
type fastError struct{ error }

func (f *fastError) Unwrap() error { return f.error }
