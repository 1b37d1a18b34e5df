// Package bundle is the directory that one run of an experiment leaves:
//
//	bundle.json      what was run, when, how far it came
//	experiment.toml  as it was given
//	site/            the site directory that was made for it
//	facts.json       the hosts: kernel, microcode, settings, drivers, tools with digests
//	trials.jsonl     a Trial on each line: the raw samples
//	probes.jsonl     a Second on each line: what the host did meanwhile
//	output/          what tools printed
//	report.{html,md,csv,json}
//	samples.csv      trials.jsonl as a table
//
// All of it is written so that a run that is killed loses no more than the trial under way.
package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"orrery/internal/lab/test"
)

// Format is the version of the layout and of the words in it.
const Format = 1

// Digest returns that of an experiment's file.
func Digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// A Head is bundle.json.
type Head struct {
	Format     int      `json:"format"`
	Orrery     string   `json:"orrery"` // version
	ID         string   `json:"id"`     // name of the directory
	Experiment string   `json:"experiment"`
	Title      string   `json:"title"`
	Source     string   `json:"source,omitempty"`
	Digest     string   `json:"digest"`         // SHA-256 of the experiment's file
	Part       []string `json:"part,omitempty"` // the tests of the file to which the run was confined; none: all
	Host       string   `json:"host"`
	// the host of a site that sent it, by its name there; "": this machine measured
	From   string    `json:"from,omitempty"`
	Who    string    `json:"who"`
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended,omitzero"`
	State  State     `json:"state"`
	Rounds int       `json:"rounds"` // complete, the first included
	Seed   uint64    `json:"seed"`   // of the order of settings
	Width  float64   `json:"width"`  // of the interval of a ratio that was aimed at
	// share of rounds above which steal or load makes a figure not measurable; 0: the default
	Disturbed float64   `json:"disturbed,omitempty"`
	Probes    float64   `json:"probes,omitempty"` // part of one processor that watching the host took
	Settings  []Setting `json:"settings"`
	Tests     []Test    `json:"tests"`
}

// State is how far a run came.
type State string

// The states.
const (
	Running     State = "running" // or killed
	Interrupted State = "interrupted"
	Done        State = "done"
)

// A Setting is a setting as the report tells it. Those called experiment.Bare and
// experiment.Control come first.
type Setting struct {
	Name     string   `json:"name"`
	About    string   `json:"about"`              // in a line, such as "container, veth on a bridge, 2 cpus"
	Missing  string   `json:"missing,omitempty"`  // why it could not be had
	Emulated bool     `json:"emulated,omitempty"` // its processors were emulated by software
	Again    string   `json:"again,omitempty"`    // the setting that this one is once more, as a control
	Nodes    []string `json:"nodes,omitempty"`
}

// A Test is a test as the report tells it; one with several copies is there once for each number of them.
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
	Slot  int `json:"slot"`  // which in its round, from 0
	// Instance counts from 1 how often the nodes were made anew; 0: this was not recorded, and they
	// were made once.
	Instance int             `json:"instance,omitempty"`
	Setting  string          `json:"setting"`
	Emulated bool            `json:"emulated,omitempty"` // in a virtual machine whose processors were emulated by software
	Test     string          `json:"test"`
	Copy     int             `json:"copy"`
	Began    time.Time       `json:"began"`
	Ended    time.Time       `json:"ended"`
	Samples  []test.Sample   `json:"samples,omitempty"`
	Series   []test.Series   `json:"series,omitempty"`
	Labels   []test.Label    `json:"labels,omitempty"`
	Moved    test.Moved      `json:"moved,omitzero"`
	Detail   json.RawMessage `json:"detail,omitempty"`
	Error    string          `json:"error,omitempty"`  // why it gave nothing
	Output   string          `json:"output,omitempty"` // the end of what was printed then
}
