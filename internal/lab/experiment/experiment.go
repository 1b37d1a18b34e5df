// Package experiment is the model of an experiment: settings × tests × rounds.
package experiment

import (
	"slices"
	"strings"
	"time"

	"orrery/internal/lab/stats"
	"orrery/internal/lab/test"
	"orrery/internal/observe"
	"orrery/internal/site"
)

// An Experiment is one file lab/*.toml, checked.
type Experiment struct {
	Name   string
	Title  string
	Source string // paper and table that it follows; "": none
	Rounds int    // kept, at least
	Most   int    // rounds kept, at most
	// PerInstance is how many rounds nodes live until they are made anew; 0: as many as are worth it;
	// Once: they never are.
	PerInstance int
	Quiet       time.Duration // how long the whole run waits at most for others to leave the host alone
	Disturbed   float64       // share of the rounds of a figure that others may disturb; with more it is not measurable
	Width       float64       // of the 95 % interval of a ratio, above which there are more rounds; 0.1: from 0.95 to 1.05
	Suite       string        // of the image of nodes
	Components  []string      // of the suite; none: as in a site file
	Packages    []string      // that the image has besides those that tests need
	Dir         string        // on the disk that is measured; "": with the host's state
	Settings    []Setting
	Tests       []Test
	Text        []byte   // the file
	Part        []string // the tests to which this is confined of those in the file; nil: all of them
}

// Decides reports whether rounds can come to enough instances to decide anything, or need not.
func (e *Experiment) Decides() bool {
	return e.PerInstance <= 0 || e.PerInstance == Once || (e.Most+e.PerInstance-1)/e.PerInstance >= stats.Enough
}

// The settings that always are there. Control is bare once more: what a comparison of the same with
// the same gives.
const (
	Bare    = "bare"
	Control = "bare again"
)

// Again ends the name of the setting that is another once more.
const Again = " again"

// DefaultDisturbed is the share of rounds above which steal or load makes a figure not measurable,
// unless the experiment says otherwise.
const DefaultDisturbed = 0.2

// A Setting is a kind of place to measure, besides the bare host.
type Setting struct {
	Name   string
	Engine string
	// Veth, Routed, Macvlan, Exclusive; of a virtual machine, its network card on the bridge: one of
	// site.CardModels
	Network    string
	Interface  string // of the host, for Macvlan and Exclusive; "": one end of a veth pair stands in for it
	Limits     site.Limits
	Privileged bool
	Again      string // the setting that this one is once more, as a control; "": it is none
	CPU        string // model of the processors that a virtual machine shows to its guest; "": what suits the host
	Type       string // of a guest of Xen: "pv", "pvh" or "hvm"; "": the usual one
	// of a virtual machine, on which its tests work: one of Disks; "": they work in a directory of the
	// host
	Disk       string
	Devices    []string // of the host, for Partition: one for each node
	Cache, AIO string   // how the disk is used, as in a site file; "": as there
	Emulated   bool     // this host runs it in software emulation
	Missing    string   // why this host cannot have it: it is told in the report instead; "": it can
}

// Virtual reports whether the setting is a virtual machine.
func (s Setting) Virtual() bool { return site.BootsKernel(s.Engine) }

// Bridged reports whether the setting is on the bridge on which the host and the other end are.
func (s Setting) Bridged() bool {
	return s.Network == Veth || s.Network == site.Vif || slices.Contains(site.CardModels, s.Network)
}

// On returns the experiment as a host can have it. Its engines say what they can do: a setting that
// none of them can run is missing, and what is emulated says so.
func (e *Experiment) On(engines map[string]observe.Capabilities) *Experiment {
	here := *e
	here.Settings = slices.Clone(e.Settings)
	for i := range here.Settings {
		s := &here.Settings[i]
		can, known := engines[s.Engine]
		switch {
		case s.Missing != "":
		case !known:
			s.Missing = "this host has no engine " + s.Engine
		case can.Unable != observe.Lack{}:
			s.Missing = can.Unable.What + "; the cure: " + can.Unable.Cure
		}
		s.Emulated = s.Missing == "" && can.Accel == observe.TCG
	}
	return &here
}

// The networks of settings.
const (
	Veth      = "veth"      // on a bridge
	Routed    = "routed"    // layer 3, no bridge
	Macvlan   = "macvlan"   // on an interface of the host
	Exclusive = "exclusive" // an interface of the host moved into the node
)

// A Test is one test of an experiment.
type Test struct {
	Name   string
	Kind   string
	Copies []int         // how many at once, each as a test of its own
	Only   []string      // settings; none: all
	Limit  time.Duration // after which a trial is ended; 0: ten times what it should take, at least a minute
	Source string        // paper and table that it follows; "": that of the experiment
	test.Test
}

// In reports whether the test is done in a setting.
func (t *Test) In(setting string) bool {
	return len(t.Only) == 0 || setting == Bare || setting == Control ||
		slices.Contains(t.Only, strings.TrimSuffix(setting, Again))
}
