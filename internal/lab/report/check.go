package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/report/quantity"
	"orrery/internal/problem"
	"orrery/internal/text/sanitize"
)

// CheckResult is the result of Check.
type CheckResult struct {
	Figures     int          // numbers that were recomputed and compared
	Differences []Difference // empty if the report matches the samples
	Damaged     problem.List // lines and files of the bundle that cannot be read
}

// A Difference is a value in the report that does not match the raw samples.
type Difference struct {
	File, Row, Recorded, Recomputed string
}

// String returns the difference as one line.
func (d Difference) String() string {
	return fmt.Sprintf("%s: %s: recorded %s, recomputed %s", d.File, d.Row, d.Recorded, d.Recomputed)
}

// Check recomputes every figure of report.json and report.csv from trials.jsonl, and also
// samples.csv and the digest of the experiment.
func Check(dir string) (*CheckResult, error) {
	c, err := bundle.Read(dir)
	if err != nil {
		return nil, err
	}
	recorded, err := readReport(dir)
	if err != nil {
		return nil, err
	}
	r := Analyse(c)
	checked := &CheckResult{Damaged: c.Damaged}
	checked.experiment(c)
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var recomputed map[string]any
	if err := json.Unmarshal(text, &recomputed); err != nil {
		return nil, err
	}
	// the other parts are copied from other files
	for _, part := range []string{"kept", "trials", "failed", "tests", "suspects"} {
		checked.walk("report.json", part, recorded[part], recomputed[part])
	}
	if err := checked.csv(dir, r); err != nil {
		return checked, err
	}
	return checked, checked.samples(dir, r)
}

// maxReportBytes limits the size of a report that is compared.
const maxReportBytes = 128 << 20

func readReport(dir string) (map[string]any, error) {
	path := filepath.Join(dir, "report.json")
	text, err := bundle.ReadFile(dir, "report.json", maxReportBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, problem.New(problem.Failed, "the bundle has no report yet").At(path).
			Try("orrery lab report %s", filepath.Dir(path))
	}
	if err != nil {
		return nil, problem.New(problem.Failed, "the report cannot be read").At(path).Because(err)
	}
	var recorded map[string]any
	if err := json.Unmarshal(text, &recorded); err != nil {
		return nil, problem.New(problem.Failed, "the report is not valid JSON").At(path).
			Try("orrery lab report %s writes it again", filepath.Dir(path))
	}
	return recorded, nil
}

func (c *CheckResult) experiment(b *bundle.Contents) {
	if digest := bundle.Digest(b.Experiment); b.Experiment == nil {
		c.differ(bundle.ExperimentFile, "SHA-256", b.Manifest.Digest, "the file is missing")
	} else if !strings.EqualFold(strings.TrimPrefix(b.Manifest.Digest, "sha256:"), digest) {
		c.differ(bundle.ExperimentFile, "SHA-256", b.Manifest.Digest, digest)
	}
}

func (c *CheckResult) differ(file, row, recorded, recomputed string) {
	c.Differences = append(c.Differences, Difference{file, sanitize.Line(row), sanitize.Line(recorded),
		sanitize.Line(recomputed)})
}

// walk compares two JSON values. An item of a list is named by its own name, so that the path of a
// row is, for example, net, tcp forward, veth.
func (c *CheckResult) walk(file, row string, recorded, recomputed any) {
	switch now := recomputed.(type) {
	case map[string]any:
		old, ok := recorded.(map[string]any)
		if !ok {
			c.differ(file, row, show(recorded), "an object")
			return
		}
		both := maps.Clone(now)
		maps.Copy(both, old)
		for _, key := range slices.Sorted(maps.Keys(both)) {
			c.walk(file, row+", "+key, old[key], now[key])
		}
	case []any:
		old, _ := recorded.([]any)
		for i := range max(len(old), len(now)) {
			x, y := elementAt(old, i), elementAt(now, i)
			c.walk(file, row+", "+itemName(x, y, i), x, y)
		}
	case float64:
		c.Figures++
		if old, ok := recorded.(float64); !ok || !equal(old, now) {
			c.differ(file, row, show(recorded), show(now))
		}
	default:
		if recorded != recomputed {
			c.differ(file, row, show(recorded), show(recomputed))
		}
	}
}

func elementAt(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

func itemName(x, y any, i int) string {
	for _, v := range []any{x, y} {
		if m, ok := v.(map[string]any); ok {
			for _, key := range []string{"name", "setting"} {
				if name, ok := m[key].(string); ok {
					return name
				}
			}
		}
	}
	return fmt.Sprint(i + 1)
}

// equal ignores differences in the last digits, which depend on the processor.
func equal(a, b float64) bool { return a == b || math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) }

func show(x any) string {
	switch v := x.(type) {
	case nil:
		return "nothing"
	case map[string]any, []any:
		text, _ := json.Marshal(v)
		return clip(string(text))
	}
	return clip(fmt.Sprint(x))
}

func clip(text string) string {
	const most = 120
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

// csv compares report.csv cell by cell. It does nothing if the file does not exist.
func (c *CheckResult) csv(dir string, r *Report) error {
	text, err := bundle.ReadFile(dir, "report.csv", maxReportBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return problem.New(problem.Failed, "the report cannot be read").At(filepath.Join(dir, "report.csv")).Because(err)
	}
	var b bytes.Buffer
	if err := r.CSV(&b); err != nil {
		return err
	}
	now, err := records(b.Bytes())
	if err != nil {
		return err
	}
	old, err := records(text)
	if err != nil {
		c.differ("report.csv", "all", "no CSV: "+err.Error(), fmt.Sprintf("%d rows", len(now)))
		return nil
	}
	for i := range max(len(old), len(now)) {
		c.walk("report.csv", fmt.Sprintf("line %d", i+1), elementAt(old, i), elementAt(now, i))
	}
	return nil
}

// samples compares samples.csv, which is as long as trials.jsonl, line by line up to the first
// difference. It does nothing if the file does not exist.
func (c *CheckResult) samples(dir string, r *Report) error {
	text, err := bundle.ReadFile(dir, "samples.csv", maxReportBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return problem.New(problem.Failed, "the samples cannot be read").At(filepath.Join(dir, "samples.csv")).Because(err)
	}
	var now bytes.Buffer
	if err := r.Samples(&now); err != nil {
		return err
	}
	old := bytes.NewBuffer(text)
	for n := 1; old.Len()+now.Len() > 0; n++ {
		recorded, _ := old.ReadString('\n')
		recomputed, _ := now.ReadString('\n')
		if recorded != recomputed {
			c.differ("samples.csv", fmt.Sprintf("line %d", n), clip(recorded), clip(recomputed))
			return nil
		}
	}
	return nil
}

// records returns the rows of CSV as maps by column name, with numbers parsed. Empty cells are
// omitted.
func records(text []byte) (all []any, err error) {
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	for _, row := range rows {
		cells := map[string]any{}
		for i, cell := range row[:min(len(row), len(csvColumns))] {
			if n, err := strconv.ParseFloat(cell, 64); err == nil && quantity.Number(n).IsFinite() {
				cells[csvColumns[i]] = n
			} else if cell != "" {
				cells[csvColumns[i]] = cell
			}
		}
		all = append(all, cells)
	}
	return all, err
}
