// Package report turns a bundle into a report: what each setting costs compared with the bare host,
// and how far to trust the answer.
//
// Read a bundle (package bundle) and call Analyse, which gives a Report: tables, answers in words,
// warnings. Write puts it into the bundle in all formats; HTML, Markdown, CSV, JSON and Text write
// one of them. Analyse is pure: the same bundle gives the same report, to the last digit. Therefore
// Check can compute a report again and find what was changed by hand, and Compare can set two of
// them side by side.
//
// The charts are SVG written here. gonum/plot puts colours and fonts into each mark, so its SVG
// cannot follow the reader's light or dark scheme or a printer, and has no titles for a screen
// reader. go-echarts needs 1 MB of JavaScript. Our three kinds of charts take their colours from
// the page's CSS.
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

// A Report is report.json.
type Report struct {
	Format int         `json:"format"`
	Bundle bundle.Head `json:"bundle"`
	Kept   int         `json:"kept"`      // rounds that count
	Nodes  []int       `json:"instances"` // of the nodes, by kept round
	// where the same differs from the same, so that nothing here can be relied on
	Controls []string        `json:"controls,omitempty"`
	Trials   int             `json:"trials"`
	Failed   int             `json:"failed"` // trials that gave nothing
	Tests    Table           `json:"tests"`
	Suspects Suspects        `json:"suspects,omitempty"`
	Damaged  []string        `json:"damaged,omitempty"` // what of the bundle could not be read
	Facts    json.RawMessage `json:"facts,omitempty"`
	Traces   []trace.Trace   `json:"-"` // of the whole run: they are in probes.jsonl
	Round    []trace.Trace   `json:"-"` // of one round

	over    []trace.Over   // figures over the time of a trial
	samples []bundle.Trial // as they were measured, round by round
}

// A Table is what all tests gave.
type Table []*Test

// A Test is what one test gave in all settings.
type Test struct {
	Name     string    `json:"name"`
	Kind     string    `json:"kind"`
	Copies   int       `json:"copies"`
	Source   string    `json:"source,omitempty"`
	Figures  []*Figure `json:"figures"`
	Failures []Failure `json:"failures,omitempty"`
	Curves   []Curve   `json:"curves,omitempty"`
	Deaths   []Deaths  `json:"deaths,omitempty"`
}

// A Figure is a row of the table: a cell for each setting, that of bare first.
type Figure struct {
	Name   string      `json:"name"`
	Unit   string      `json:"unit"`
	Better test.Better `json:"better"`
	// of what is the same to the same: bare again to bare, and a container likewise
	Control *Band   `json:"control,omitempty"`
	Cells   []*Cell `json:"cells"`
}

// A Band is an interval of ratios.
type Band struct {
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Range bool    `json:"range,omitempty"` // too few instances for a 95 % interval: the least and the greatest of theirs
}

// A Cell is one figure in one setting. Summary is nil if it has no value, and Ratio if there is none to bare.
type Cell struct {
	Setting string `json:"setting"`
	// the setting that this one is once more: it is compared with that, not with bare
	Again string `json:"again,omitempty"`
	// its processors were emulated by software, as its name says, too
	Emulated  bool              `json:"emulated,omitempty"`
	Values    []quantity.Number `json:"values"` // by kept round; of copies that ran at once, together
	Summary   *stats.Summary    `json:"summary,omitempty"`
	Single    *stats.Summary    `json:"single,omitempty"` // of single copies, if several ran at once
	Ratio     *Ratio            `json:"ratio,omitempty"`
	Labels    []Mark            `json:"labels,omitempty"`
	Disturbed bool              `json:"disturbed,omitempty"` // others used the host in too many of its rounds
	Failed    int               `json:"failed,omitempty"`    // trials
	Missing   string            `json:"missing,omitempty"`   // why there is no value
	fails     []bool            // by kept round: a trial of it failed
}

// A Ratio is that of a setting to bare. Verdict is empty where nothing is judged: for controls, and
// for figures that are only told.
type Ratio struct {
	N         int `json:"n"`         // rounds that have both
	Instances int `json:"instances"` // in which they were done
	// what instances add to its spread, as a share; null: cannot be told apart
	Between quantity.Number `json:"between_instances"`
	Within  quantity.Number `json:"between_rounds"`  // what rounds of an instance add
	Modes   bool            `json:"modes,omitempty"` // the values lie in two heaps
	// instances in a row that count for one, since neighbours are too much alike
	Block int     `json:"block,omitempty"`
	Value float64 `json:"value"`
	Low   float64 `json:"low"` // of its 95 % interval
	High  float64 `json:"high"`
	// too few instances for an interval: Low and High are the least and the greatest
	Range     bool          `json:"range,omitempty"`
	P         float64       `json:"p"`
	Adjusted  float64       `json:"adjusted"` // p after Holm, over the whole table
	Verdict   stats.Verdict `json:"verdict,omitempty"`
	Failures  *Failures     `json:"failures,omitempty"`
	suspected bool          // neighbours in time may be too much alike: more rounds will tell
}

// Failures counts the instances in which a test failed in at least half of the rounds, or gave 0 of a rate.
type Failures struct {
	Setting int     `json:"setting"`
	Of      int     `json:"of"`
	Bare    int     `json:"bare"`
	BareOf  int     `json:"bare_of"`
	P       float64 `json:"p"` // adjusted, over all failures of the table
}

// A Mark is a suspect label on a cell.
type Mark struct {
	Name  string `json:"name"`
	Count int    `json:"count"` // trials of the cell that had it
	Of    int    `json:"of"`    // trials of the cell
	Why   string `json:"why"`   // of the last of them
}

// Suspects are the labels of a report, those of the most cells first.
type Suspects []Suspect

// A Suspect is a label, and all that bears it.
type Suspect struct {
	Name  string   `json:"name"`
	Why   []string `json:"why"` // what was seen, at most a few
	Cure  string   `json:"cure"`
	Cells int      `json:"cells"` // that bear it
	Of    int      `json:"of"`    // cells in all
	Where []string `json:"where"` // test, figure: settings; empty if it is everywhere
}

// A Failure is why trials of a test gave nothing in a setting.
type Failure struct {
	Setting string `json:"setting"`
	Count   int    `json:"count"`
	Of      int    `json:"of"`     // trials
	Rounds  []int  `json:"rounds"` // in which it was so
	Reason  string `json:"reason"`
	Output  string `json:"output,omitempty"` // the end of it, of the last of them
}
