// Package command measures the numbers that a user's command prints.
//
// It finds them by regular expressions (RE2, https://github.com/google/re2/wiki/Syntax) or by paths
// into JSON (gjson, https://github.com/tidwall/gjson/blob/master/SYNTAX.md).
package command

import (
	"regexp"
	"slices"
	"time"

	"orrery/internal/lab/test"
)

// options are the keys of the test in an experiment. docs/lab.md has the comments of the fields.
type options struct {
	// Required: a list of words, the first a program in the layer, or a string for `/bin/sh`. Figures
	// come from its standard output
	Command any `toml:"command"`
	// Default none: Debian packages to install
	Packages []string `toml:"packages"`
	// Required: at least one, with `name`; `unit`; `better` (`"more"`, `"less"`, or `"neither"`:
	// default, no verdict); `regex`, whose first group is the number, or `json`, a path of gjson;
	// `factor`; `every`: seconds between matches, whose mean is the figure; `copies` (`"mean"`, or
	// `"sum"`: default if the unit is per second)
	Figures []figure `toml:"figures"`
	// Default `1.0`: about how long it takes
	Seconds float64 `toml:"seconds"`
	// Default none: programs from these packages, looked for before the first round; a shell on the
	// bare host finds the layer's
	Programs []string `toml:"programs"`
	// Default none: runs at the far end at the same time, a list or a string
	FarCommand any `toml:"far_command"`
	// Default none: on which that must listen first; further copies have the next ones
	FarPort int `toml:"far_port"`
	// Default `"tcp"`: or `"udp"`
	FarProto string `toml:"far_protocol"`
	// Default `false`: it needs a far end
	Far bool `toml:"far"`
}

// A figure is a number that the command prints.
type figure struct {
	Name   string   `toml:"name"`
	Unit   string   `toml:"unit"`
	Better string   `toml:"better"`
	Copies string   `toml:"copies"` // how the values of several copies are combined: sum or mean
	Regex  string   `toml:"regex"`  // the first group matches the number
	JSON   string   `toml:"json"`   // a gjson path
	Factor *float64 `toml:"factor"` // multiplied with the number to convert it to Unit
	// Interval in seconds at which the regex matches. The figure is the mean of all matches. If 0,
	// the regex matches once.
	Every float64 `toml:"every"`

	pattern *regexp.Regexp
}

// command is the test of this kind.
type command struct {
	options
	near, far line
}

// New creates the test from its options.
func New(decode func(options any) error) (test.Test, error) {
	c := &command{options: options{Seconds: 1, FarProto: "tcp"}}
	if err := test.Read(decode, &c.options, c.check); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *command) check(wrong test.MistakeFunc) {
	var ok bool
	if c.near, ok = parseLine(c.Command); !ok || c.near.empty() {
		wrong(`write command = "fio …" for a shell, or command = ["fio", "…"]`, "command is missing")
	}
	if c.far, ok = parseLine(c.FarCommand); !ok {
		wrong("write a string for a shell, or a list of strings", "far_command is neither a string nor a list")
	}
	if c.FarProto != "tcp" && c.FarProto != "udp" {
		wrong("write \"tcp\" or \"udp\"", "far_protocol = %q", c.FarProto)
	}
	if !c.far.empty() && (c.FarPort < 1 || c.FarPort > 65000) {
		wrong("write the port on which far_command listens, from 1 to 65000; in $ORRERY_PORT each further copy gets the next one",
			"far_port = %d", c.FarPort)
	}
	if !(c.Seconds > 0 && c.Seconds <= 1e6) {
		wrong("write about how long the command takes", "seconds = %v", c.Seconds)
	}
	if len(c.options.Figures) == 0 {
		wrong(`write figures = [{name = "…", unit = "s", better = "less", regex = "took ([0-9.]+)"}]`,
			"figures is missing")
	}
	for i := range c.options.Figures {
		f := &c.options.Figures[i]
		f.check(wrong)
		if slices.ContainsFunc(c.options.Figures[:i], func(g figure) bool { return g.Name == f.Name }) {
			wrong("write a different name for each", "figures: %q is listed twice", f.Name)
		}
	}
}

// Needs returns the packages that the user listed, and whether there must be a far end.
func (c *command) Needs() test.Needs {
	return test.Needs{Packages: c.Packages, Far: c.Far || !c.far.empty()}
}

// Figures returns the figures that the user defined.
func (c *command) Figures() []test.Figure {
	var all []test.Figure
	for _, f := range c.options.Figures {
		all = append(all, test.Figure{Name: f.Name, Unit: f.Unit, Better: test.Direction(f.Better),
			Aggregate: test.Aggregate(f.Copies)})
	}
	return all
}

// Time returns the user's estimate.
func (c *command) Time() time.Duration { return time.Duration(c.Seconds * float64(time.Second)) }
