// Package setting creates the settings of an experiment.
//
// It writes a site directory with a node for each place except bare hosts. Once that site is
// running, it returns the places.
package setting

import (
	"fmt"
	"slices"
	"strings"

	"orrery/internal/lab/experiment"
	"orrery/internal/lab/test"
	"orrery/internal/site"
)

// SiteName is the name of the site of the settings. A host has only one at a time, because two
// would disturb each other's measurements.
const SiteName = "orrery-lab"

// FarEnd is the node at the far end of the traffic.
const FarEnd = "far"

// The IDs of nodes: that of Far, and the first of all others.
const (
	farID   = 1
	firstID = 10
)

// A Testbed is what an experiment needs on a host.
type Testbed struct {
	Experiment *experiment.Experiment
	Work       string   // directory of the host on the measured disk
	Subnets    []string // first three numbers of the addresses of each network, such as "198.18.0"
	Needs      test.Needs
	settings   []experiment.Setting // settings that this host supports
}

// New returns the testbed of an experiment. prefixes are free /24 networks; Networks returns how many
// are needed.
func New(e *experiment.Experiment, work string, prefixes []string) *Testbed {
	s := &Testbed{Experiment: e, Work: work, Subnets: prefixes, Needs: needs(e)}
	for _, one := range e.Settings {
		if one.Missing == "" {
			s.settings = append(s.settings, one)
		}
	}
	return s
}

// needs combines the needs of all tests.
func needs(e *experiment.Experiment) test.Needs {
	var all test.Needs
	for _, t := range e.Tests {
		n := t.Needs()
		all.Packages = append(all.Packages, n.Packages...)
		for _, p := range n.Programs {
			if !slices.ContainsFunc(all.Programs, func(q test.Program) bool { return q.Name == p.Name }) {
				all.Programs = append(all.Programs, p)
			}
		}
		all.Tools = append(all.Tools, n.Tools...)
		all.Runs = append(all.Runs, n.Runs...)
		for _, p := range n.Programs {
			all.Runs = append(all.Runs, p.Name)
		}
		all.Far = all.Far || n.Far
		all.Disk += n.Disk * int64(slices.Max(t.Copies))
	}
	all.Packages = sortedSet(all.Packages)
	all.Tools = sortedSet(all.Tools)
	all.Runs = sortedSet(append(all.Runs, all.Tools...))
	return all
}

func sortedSet(words []string) []string {
	slices.Sort(words)
	return slices.Compact(words)
}

// Nodes returns the names of the nodes of a setting, one for each copy.
func (s *Testbed) Nodes(of experiment.Setting) []string {
	names := []string{nodeName(of.Name)}
	for i := 2; i <= s.copies(of); i++ {
		names = append(names, fmt.Sprintf("%s-%d", nodeName(of.Name), i))
	}
	return names
}

// copies returns how many concurrent nodes a setting needs, at most as many as it can have.
func (s *Testbed) copies(of experiment.Setting) int {
	most := 1
	for _, t := range s.Experiment.Tests {
		if t.RunsIn(of.Name) {
			most = max(most, slices.Max(t.Copies))
		}
	}
	return min(most, of.MaxNodes())
}

// nodeName makes a host name from the name of a setting.
func nodeName(setting string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(setting))
	return "s-" + strings.Trim(name, "-")
}

// Describe describes a setting in one line.
func Describe(of experiment.Setting) string {
	words := []string{"container"}
	switch {
	case of.Virtual():
		words = []string{"virtual machine"}
	case of.Engine != "" && of.Engine != site.LXC:
		words = []string{of.Engine}
	}
	if of.Engine == site.Xen {
		words = []string{strings.TrimSpace("Xen guest " + of.Type)}
	}
	if of.Emulated {
		words = append(words, "emulated")
	}
	if of.CPU != "" {
		words = append(words, "processors "+of.CPU)
	}
	switch of.Disk {
	case experiment.File:
		words = append(words, "disk in a raw file")
	case experiment.Raw, experiment.QCow2:
		words = append(words, "disk in a "+of.Disk+" file")
	case experiment.Partition:
		words = append(words, "disk on a partition")
	}
	if of.Cache != "" {
		words = append(words, "cache "+of.Cache)
	}
	if of.AIO != "" {
		words = append(words, "aio "+of.AIO)
	}
	switch of.Network {
	case experiment.Veth:
		words = append(words, "veth on a bridge")
	case site.Virtio, site.E1000, site.RTL8139:
		words = append(words, of.Network+" on a bridge")
	case site.Vif:
		words = append(words, "vif on a bridge")
	case experiment.Routed:
		words = append(words, "veth, routed")
	case experiment.Macvlan:
		words = append(words, "macvlan on "+orStandIn(of.Interface))
	case experiment.Exclusive:
		words = append(words, "exclusive interface "+orStandIn(of.Interface))
	}
	if of.Limits.Cpus > 0 {
		words = append(words, fmt.Sprintf("%g cpus", of.Limits.Cpus))
	}
	if of.Limits.Pin != "" {
		words = append(words, "pinned to "+of.Limits.Pin)
	}
	if of.Limits.Memory > 0 {
		words = append(words, fmt.Sprintf("%d MiB", of.Limits.Memory>>20))
	}
	if of.Privileged {
		words = append(words, "privileged")
	}
	return strings.Join(words, ", ")
}

func orStandIn(name string) string {
	if name == "" {
		return "a veth pair in place of a NIC"
	}
	return name
}
