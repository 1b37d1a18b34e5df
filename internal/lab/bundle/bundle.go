// Package bundle reads and writes the directory of one run of an experiment:
//
//	bundle.json      what was run, when, and the progress
//	experiment.toml  the experiment, as given
//	site/            the site directory of the run
//	facts.json       the hosts: kernel, microcode, settings, drivers, tools with digests
//	trials.jsonl     a Trial on each line: the raw samples
//	probes.jsonl     a Second on each line: what the host did during the run
//	output/          output of the tools
//	report.{html,md,csv,json}
//	samples.csv      trials.jsonl as a table
//
// The files are written such that a killed run loses only the current trial.
package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"orrery/internal/lab/test"
)

// Format is the version of the layout and the keys.
const Format = 1

// Digest returns the digest of an experiment's file.
func Digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// A Manifest is the content of bundle.json.
type Manifest struct {
	Format     int    `json:"format"`
	Orrery     string `json:"orrery"` // version
	ID         string `json:"id"`     // name of the directory
	Experiment string `json:"experiment"`
	Title      string `json:"title"`
	Source     string `json:"source,omitempty"`
	Digest     string `json:"digest"` // SHA-256 of the experiment's file
	// tests of the file to which the run was restricted, or none for all
	Part []string `json:"part,omitempty"`
	Host string   `json:"host"`
	// name of the host in the site that sent the bundle, or "" if this machine measured
	From   string    `json:"from,omitempty"`
	Who    string    `json:"who"`
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended,omitzero"`
	State  State     `json:"state"`
	Rounds int       `json:"rounds"` // complete rounds, including the first
	Seed   uint64    `json:"seed"`   // for the order of settings
	Width  float64   `json:"width"`  // desired width of the interval of a ratio
	// share of rounds with steal or load above which a figure is not measurable, or 0 for the
	// default
	Disturbed float64   `json:"disturbed,omitempty"`
	Probes    float64   `json:"probes,omitempty"` // share of one processor that watching the host used
	Settings  []Setting `json:"settings"`
	Tests     []Test    `json:"tests"`
}

// State is the progress of a run.
type State string

// The states.
const (
	Running     State = "running" // or killed
	Interrupted State = "interrupted"
	Done        State = "done"
)

// A Setting is a setting as shown in the report. experiment.Bare and experiment.Control come first.
type Setting struct {
	Name string `json:"name"`
	// description in one line, such as "container, veth on a bridge, 2 cpus"
	About    string   `json:"about"`
	Missing  string   `json:"missing,omitempty"`  // why it was not available
	Emulated bool     `json:"emulated,omitempty"` // its processors were emulated by software
	Again    string   `json:"again,omitempty"`    // the setting that this one repeats as a control
	Nodes    []string `json:"nodes,omitempty"`
}

// A Test is a test as shown in the report. A test with several numbers of copies has an entry for
// each number.
type Test struct {
	Name    string        `json:"name"` // unique in the bundle, such as "cpu x8"
	Kind    string        `json:"kind"`
	Copies  int           `json:"copies"`
	Figures []test.Figure `json:"figures"`
	Source  string        `json:"source,omitempty"` // paper and table, tool
}

// A Trial is one run of a test in one place: a line of trials.jsonl.
type Trial struct {
	Round int `json:"round"` // 0 does not count
	Slot  int `json:"slot"`  // position in its round, from 0
	// Instance counts the instances of the nodes from 1. 0 means that it was not recorded, and that
	// the nodes were created only once.
	Instance int    `json:"instance,omitempty"`
	Setting  string `json:"setting"`
	// in a virtual machine whose processors were emulated by software
	Emulated bool            `json:"emulated,omitempty"`
	Test     string          `json:"test"`
	Copy     int             `json:"copy"`
	Began    time.Time       `json:"began"`
	Ended    time.Time       `json:"ended"`
	Samples  []test.Sample   `json:"samples,omitempty"`
	Series   []test.Series   `json:"series,omitempty"`
	Labels   []test.Label    `json:"labels,omitempty"`
	Moved    test.Moved      `json:"moved,omitzero"`
	Detail   json.RawMessage `json:"detail,omitempty"`
	Error    string          `json:"error,omitempty"`  // why it has no result
	Output   string          `json:"output,omitempty"` // the end of the failed command's output
}
