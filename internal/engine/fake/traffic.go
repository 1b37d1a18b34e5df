package fake

import (
	"orrery/internal/observe"
	"orrery/internal/site/spec"
	"orrery/internal/site/traffic"
)

// Traffic are the limits of traffic of a host in memory. They are always those that its nodes record.
type Traffic struct{ h *Host }

// Traffic returns the limits of traffic of the host.
func (h *Host) Traffic() Traffic { return Traffic{h} }

// Lacks returns the host's NoTraffic.
func (t Traffic) Lacks(traffic.Limits) observe.Missing { return t.h.NoTraffic }

// Observe does nothing.
func (Traffic) Observe([]observe.Node) error { return nil }

// Set does nothing.
func (Traffic) Set(*spec.Node) error { return nil }

// Sweep does nothing.
func (Traffic) Sweep() error { return nil }
