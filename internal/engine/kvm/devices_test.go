package kvm

import (
	"testing"

	"orrery/internal/host/numa"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestBounds: a machine on a node of the host's memory runs beside it, unless it is pinned.
func TestBounds(t *testing.T) {
	nodes := numa.Nodes(numa.Sys)
	if len(nodes) == 0 {
		t.Skip("this kernel tells of no NUMA node")
	}
	n := &spec.Node{Limits: site.Limits{Cpus: 1, Memory: 1 << 30}, VM: site.VM{Numa: &nodes[0].ID}}
	if got := bounds(n); got != (site.Limits{Cpus: 1, Pin: nodes[0].Online}) {
		t.Errorf("%+v", got)
	}
	n.Limits.Pin = "0"
	if got := bounds(n); got.Pin != "0" {
		t.Errorf("%+v", got)
	}
	n.VM.Numa, n.Limits.Pin = nil, ""
	if got := bounds(n); got != (site.Limits{Cpus: 1}) {
		t.Errorf("%+v", got)
	}
}
