package kvm

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"orrery/internal/engine/process"
	"orrery/internal/host/numa"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestThreadsOf: QEMU says numbers of its own namespace.
func TestThreadsOf(t *testing.T) {
	table := process.Table(t.TempDir())
	for tid, status := range map[string]string{"610": "Name:\tqemu\nNSpid:\t610\t1\n", "613": "Name:\tCPU 0/KVM\nNSpid:\t613\t4\nVmRSS:\t1\n", "614": "Name:\tCPU 1/KVM\nNSpid:\t614\t5\n", "615": ""} {
		dir := table.File(610, filepath.Join("task", tid))
		must(t, os.MkdirAll(dir, 0o755))
		must(t, os.WriteFile(filepath.Join(dir, "status"), []byte(status), 0o644))
	}
	if got, err := threadsOf(table, 610); err != nil || !maps.Equal(got, map[int]int{1: 610, 4: 613, 5: 614}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := threadsOf(table, 611); err == nil {
		t.Error("a process that is not there has threads")
	}
}

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
