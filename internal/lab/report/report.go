// Package report creates the report of a bundle: what each setting costs compared with bare.
//
// Read a bundle (package bundle) and call Analyse. It returns a Report with tables, answers in
// words, warnings, and how far to trust the answers. Write writes it into the bundle in all
// formats. HTML, Markdown, CSV, JSON and Text write one of them. Analyse is pure: the same bundle
// yields the same report, to the last digit. Therefore Check can compute a report again and find
// manual changes, and Compare can compare two reports.
//
// This package writes the SVG of the charts itself. gonum/plot puts colours and fonts into each
// mark, so its SVG cannot follow the reader's light or dark scheme or a printer, and it has no
// titles for a screen reader. go-echarts needs 1 MB of JavaScript. The three kinds of charts here
// take their colours from the page's CSS.
package report

import (
	"encoding/json"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/report/quantity"
	"orrery/internal/lab/report/trace"
	"orrery/internal/lab/stats"
	"orrery/internal/lab/test"
)

// Format is the version of report.json.
const Format = 1

// A Report is the content of report.json.
type Report struct {
	Format int             `json:"format"`
	Bundle bundle.Manifest `json:"bundle"`
	Kept   int             `json:"kept"`      // rounds that count
	Nodes  []int           `json:"instances"` // instance of the nodes, by kept round
	// controls that differ from what they repeat, which makes the whole table unreliable
	Controls []string        `json:"controls,omitempty"`
	Trials   int             `json:"trials"`
	Failed   int             `json:"failed"` // trials without a result
	Tests    Table           `json:"tests"`
	Suspects Suspects        `json:"suspects,omitempty"`
	Damaged  []string        `json:"damaged,omitempty"` // parts of the bundle that could not be read
	Facts    json.RawMessage `json:"facts,omitempty"`
	Traces   []trace.Trace   `json:"-"` // of the whole run, from probes.jsonl
	Round    []trace.Trace   `json:"-"` // of one round

	over    []trace.TimeSeries // figures over the time of a trial
	samples []bundle.Trial     // in the order of measurement, round by round
}

// A Table holds the results of all tests.
type Table []*Test

// A Test holds the results of one test in all settings.
type Test struct {
	Name     string    `json:"name"`
	Kind     string    `json:"kind"`
	Copies   int       `json:"copies"`
	Source   string    `json:"source,omitempty"`
	Figures  []*Figure `json:"figures"`
	Failures []Failure `json:"failures,omitempty"`
	Curves   []Curve   `json:"curves,omitempty"`
	Deaths   []Drops   `json:"deaths,omitempty"`
}

// A Figure is a row of the table. It has a cell for each setting, with bare first.
type Figure struct {
	Name   string         `json:"name"`
	Unit   string         `json:"unit"`
	Better test.Direction `json:"better"`
	// A/A band: of bare against bare, and of a container against itself
	Control *Band   `json:"control,omitempty"`
	Cells   []*Cell `json:"cells"`
}

// A Band is an interval of ratios.
type Band struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// too few instances for a 95 % interval: the lowest and the highest ratio
	Range bool `json:"range,omitempty"`
}

// A Cell is one figure in one setting. Summary is nil if there is no value. Ratio is nil if there
// is no ratio to bare.
type Cell struct {
	Setting string `json:"setting"`
	// the setting that this one repeats, and with which it is compared instead of bare
	Again string `json:"again,omitempty"`
	// the processors were emulated by software; the setting's name says so too
	Emulated  bool              `json:"emulated,omitempty"`
	Values    []quantity.Number `json:"values"` // by kept round, with concurrent copies combined
	Summary   *stats.Summary    `json:"summary,omitempty"`
	Single    *stats.Summary    `json:"single,omitempty"` // of single copies, if several ran at once
	Ratio     *Ratio            `json:"ratio,omitempty"`
	Labels    []Mark            `json:"labels,omitempty"`
	Disturbed bool              `json:"disturbed,omitempty"` // other processes used the host in too many rounds
	Failed    int               `json:"failed,omitempty"`    // number of failed trials
	Missing   string            `json:"missing,omitempty"`   // why there is no value
	fails     []bool            // by kept round: whether a trial failed
}

// A Ratio is the ratio of a setting to bare. Verdict is empty for controls and for figures that are
// not judged.
type Ratio struct {
	N         int `json:"n"`         // rounds that have both values
	Instances int `json:"instances"` // instances of the nodes in these rounds
	// contribution of instances to the spread, as a share; null if it cannot be separated
	Between quantity.Number `json:"between_instances"`
	Within  quantity.Number `json:"between_rounds"`  // contribution of rounds within an instance
	Modes   bool            `json:"modes,omitempty"` // the values are bimodal
	// number of consecutive instances that count as one because of autocorrelation
	Block int     `json:"block,omitempty"`
	Value float64 `json:"value"`
	Low   float64 `json:"low"` // of the 95 % interval
	High  float64 `json:"high"`
	// too few instances for an interval: Low and High are the lowest and the highest ratio
	Range     bool          `json:"range,omitempty"`
	P         float64       `json:"p"`
	Adjusted  float64       `json:"adjusted"` // p after Holm's correction over the whole table
	Verdict   stats.Verdict `json:"verdict,omitempty"`
	Failures  *Failures     `json:"failures,omitempty"`
	suspected bool          // possible autocorrelation: more rounds are needed to tell
}

// Failures counts the instances in which a test failed, or had a rate of 0, in at least half of the
// rounds.
type Failures struct {
	Setting int     `json:"setting"`
	Of      int     `json:"of"`
	Bare    int     `json:"bare"`
	BareOf  int     `json:"bare_of"`
	P       float64 `json:"p"` // adjusted over all failures of the table
}

// A Mark is a label of suspect values on a cell.
type Mark struct {
	Name  string `json:"name"`
	Count int    `json:"count"` // trials of the cell with this label
	Of    int    `json:"of"`    // all trials of the cell
	Why   string `json:"why"`   // from the last of these trials
}

// Suspects are the labels of a report, sorted by the number of cells in descending order.
type Suspects []Suspect

// A Suspect is a label with the cells that have it.
type Suspect struct {
	Name  string   `json:"name"`
	Why   []string `json:"why"` // observations, at most a few
	Cure  string   `json:"cure"`
	Cells int      `json:"cells"` // cells that have the label
	Of    int      `json:"of"`    // all cells
	Where []string `json:"where"` // "test, figure: settings", or empty if all cells have it
}

// A Failure is a reason why trials of a test had no result in a setting.
type Failure struct {
	Setting string `json:"setting"`
	Count   int    `json:"count"`
	Of      int    `json:"of"`     // all trials
	Rounds  []int  `json:"rounds"` // rounds with this failure
	Reason  string `json:"reason"`
	Output  string `json:"output,omitempty"` // the end of the output of the last such trial
}
