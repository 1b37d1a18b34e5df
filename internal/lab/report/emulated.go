package report

import (
	"slices"
	"strings"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/report/trace"
	"orrery/internal/problem"
)

// emulatedSuffix is appended to the name of a setting with emulated processors, in each row, chart and
// export.
const emulatedSuffix = " (emulated)"

// markEmulated returns a copy of the contents in which the names of emulated settings are marked.
func markEmulated(c *bundle.Contents) *bundle.Contents {
	shown := map[string]string{}
	for _, s := range c.Manifest.Settings {
		said := func(t bundle.Trial) bool { return t.Setting == s.Name && t.Emulated }
		if s.Emulated || slices.ContainsFunc(c.Trials, said) {
			shown[s.Name] = s.Name + emulatedSuffix
		}
	}
	if len(shown) == 0 {
		return c
	}
	m := *c
	m.Manifest.Settings, m.Trials = slices.Clone(c.Manifest.Settings), slices.Clone(c.Trials)
	for i := range m.Manifest.Settings {
		s := &m.Manifest.Settings[i]
		if name, ok := shown[s.Name]; ok {
			s.Name, s.Emulated = name, true
		}
		if name, ok := shown[s.Again]; ok {
			s.Again = name
		}
	}
	for i := range m.Trials {
		if name, ok := shown[m.Trials[i].Setting]; ok {
			m.Trials[i].Setting = name
		}
	}
	return &m
}

// markTraces marks the names of traces from emulated nodes. It does not mark the traffic of links,
// which the host measured itself.
func markTraces(h *bundle.Manifest, traces []trace.Trace) {
	for _, s := range h.Settings {
		for _, node := range s.Nodes {
			for i := range traces {
				if s.Emulated && traces[i].Name == trace.ProcessorsOf(node) {
					traces[i].Name += emulatedSuffix
				}
			}
		}
	}
}

// Comparable returns an error if a setting was emulated in only one of the two reports.
func Comparable(before, after *Report) error {
	for _, a := range before.Bundle.Settings {
		for _, b := range after.Bundle.Settings {
			same := strings.TrimSuffix(a.Name, emulatedSuffix) == strings.TrimSuffix(b.Name, emulatedSuffix)
			if !same || a.Emulated == b.Emulated || a.Missing != "" || b.Missing != "" {
				continue
			}
			slow, fast := before, after
			if b.Emulated {
				slow, fast = after, before
			}
			return problem.New(problem.Mistake,
				"setting %s was emulated in software in %s, but not in %s, so they cannot be compared",
				strings.TrimSuffix(a.Name, emulatedSuffix), slow.Bundle.ID, fast.Bundle.ID).
				Try("compare runs of the same kind; orrery doctor shows whether KVM works on a host")
		}
	}
	return nil
}
