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

// An Experiment is a checked file lab/*.toml.
type Experiment struct {
	Name   string
	Title  string
	Source string // paper and table that it follows, or ""
	Rounds int    // minimum number of rounds that count
	Most   int    // maximum number of rounds that count
	// PerInstance is the number of rounds after which nodes are recreated. 0 chooses the number
	// automatically. Once means never.
	PerInstance int
	Quiet       time.Duration // how long the whole run waits at most until other processes leave the host idle
	Disturbed   float64       // share of disturbed rounds above which a figure is not measurable
	// desired width of the 95 % interval of a ratio; 0.1 means from 0.95 to 1.05. Wider ones need
	// more rounds.
	Width      float64
	Suite      string   // of the nodes' image
	Components []string // of the suite; the default of site files if empty
	Packages   []string // additional packages of the image, besides those that tests need
	Dir        string   // on the measured disk, or "" for a directory with the host's state
	Settings   []Setting
	Tests      []Test
	Text       []byte   // of the file
	Part       []string // tests of the file to which this is restricted, or nil for all
}

// CanDecide reports whether there can be enough instances for a verdict, as far as PerInstance
// determines that.
func (e *Experiment) CanDecide() bool {
	return e.PerInstance <= 0 || e.PerInstance == NeverRecreate ||
		(e.Most+e.PerInstance-1)/e.PerInstance >= stats.MinInstances
}

// The settings that always exist. Control repeats bare, to show the differences between equal
// settings.
const (
	Bare    = "bare"
	Control = "bare again"
)

// AgainSuffix is the suffix of the name of a setting that repeats another one.
const AgainSuffix = " again"

// DefaultDisturbed is the share of rounds with steal or load above which a figure is not
// measurable, unless the experiment has another value.
const DefaultDisturbed = 0.2

// A Setting is a kind of place to measure other than the bare host.
type Setting struct {
	Name   string
	Engine string
	// Veth, Routed, Macvlan or Exclusive. For a virtual machine, its network card on the bridge:
	// one of site.NICModels.
	Network    string
	Interface  string // of the host, for Macvlan and Exclusive, or "" for one end of a veth pair
	Limits     site.Limits
	Privileged bool
	Again      string // the setting that this one repeats as a control, or ""
	CPU        string // CPU model of a virtual machine, or "" for what suits the host
	Type       string // of a Xen guest: "pv", "pvh" or "hvm", or "" for the default
	// Disk of a virtual machine for its tests: one of Disks, or "" for a directory of the host.
	Disk       string
	Devices    []string // devices of the host for Partition, one for each node
	Cache, AIO string   // how the disk is used, as in a site file, or "" for the default
	Emulated   bool     // this host emulates the processors in software
	Missing    string   // why this host does not support the setting, for the report, or ""
}

// Virtual reports whether the setting is a virtual machine.
func (s Setting) Virtual() bool { return site.BootsKernel(s.Engine) }

// Bridged reports whether the setting is on the bridge of the host and the far end.
func (s Setting) Bridged() bool {
	return s.Network == Veth || s.Network == site.Vif || slices.Contains(site.NICModels, s.Network)
}

// ForHost returns a copy of the experiment for a host with the given engines. A setting that no engine
// can run is marked as missing, and an emulated one as emulated.
func (e *Experiment) ForHost(engines map[string]observe.Capabilities) *Experiment {
	here := *e
	here.Settings = slices.Clone(e.Settings)
	for i := range here.Settings {
		s := &here.Settings[i]
		can, known := engines[s.Engine]
		switch {
		case s.Missing != "":
		case !known:
			s.Missing = "this host has no engine " + s.Engine
		case can.Unable != observe.Missing{}:
			s.Missing = can.Unable.What + "; " + can.Unable.Cure
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
	Exclusive = "exclusive" // an interface of the host, moved into the node
)

// A Test is one test of an experiment.
type Test struct {
	Name   string
	Kind   string
	Copies []int         // numbers of concurrent copies, each of which is a separate test
	Only   []string      // settings, or all if empty
	Limit  time.Duration // timeout of a trial, or 0 for ten times the expected duration, at least a minute
	Source string        // paper and table that it follows, or "" for that of the experiment
	test.Test
}

// RunsIn reports whether the test runs in a setting.
func (t *Test) RunsIn(setting string) bool {
	return len(t.Only) == 0 || setting == Bare || setting == Control ||
		slices.Contains(t.Only, strings.TrimSuffix(setting, AgainSuffix))
}
