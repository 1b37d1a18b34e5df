package xen

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/host/xl"
	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/problem"
)

// ground returns an engine on a host whose xl is a script, with the record of a stopped node.
func ground(t *testing.T, script string) (e *Engine, m machine, asked func() string) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	if err := os.WriteFile(filepath.Join(dir, "xl"), []byte("#!/bin/sh\necho \"$@\" >>"+log+"\n"+script),
		0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	e = New(host.Dirs{State: filepath.Join(dir, "state"), Run: filepath.Join(dir, "run")},
		image.Open(filepath.Join(dir, "state")))
	e.Slots, e.lacks, e.dom0 = filepath.Join(dir, "slots"), func() error { return nil }, func() error { return nil }
	n := aNode()
	n.Site, n.NICs = "unit-xen", nil
	m = e.machine(engine.RefOf(n))
	if err := os.MkdirAll(m.Path(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := m.Write(&nodedir.Record{Node: *n}); err != nil {
		t.Fatal(err)
	}
	return e, m, func() string {
		text, _ := os.ReadFile(log)
		return strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "; ")
	}
}

// TestDestroy: only the domain of the node is ended. A missing domain is no error. If the domain
// cannot be ended, Destroy returns an error and the node stays.
func TestDestroy(t *testing.T) {
	e, m, asked := ground(t, `echo "orrery-unit-xen-7 is an invalid domain identifier (rc=-6)" >&2; exit 1`)
	if err := e.Destroy(t.Context(), m.Ref); err != nil || asked() != "destroy orrery-unit-xen-7" {
		t.Errorf("%v; xl is asked: %s", err, asked())
	}
	if _, err := os.Stat(m.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the node is still there: %v", err)
	}
	e, m, _ = ground(t, `echo "libxl: error: libxl_domain.c:1:x: Domain 3:Unable to destroy guest" >&2; exit 1`)
	if err := e.Destroy(t.Context(), m.Ref); problem.ExitCode(err) != int(problem.Failed) ||
		!strings.Contains(err.Error(), "Unable to destroy guest") {
		t.Errorf("%v", err)
	}
	if _, err := m.Read(); err != nil {
		t.Errorf("a node whose domain goes on is gone: %v", err)
	}
}

// TestEndedByOthers: if another process ends a domain at the same time, the domain counts as ended.
// A domain that is still listed does not.
func TestEndedByOthers(t *testing.T) {
	script := `
case $1 in
destroy) echo "libxl: error: libxl_domain.c:1:x: Domain 3:Non-existent domain" >&2; exit 1 ;;
list) printf 'Name ID Mem VCPUs State Time(s)\nDomain-0 0 1024 1 r----- 1.0\n%s' "$LEFT" ;;
esac`
	e, m, asked := ground(t, script)
	if err := e.Destroy(t.Context(), m.Ref); err != nil || asked() != "destroy orrery-unit-xen-7; list" {
		t.Errorf("%v; xl is asked: %s", err, asked())
	}
	e, m, _ = ground(t, script)
	t.Setenv("LEFT", "orrery-unit-xen-7 3 256 1 -b---- 1.0\n")
	if err := e.Destroy(t.Context(), m.Ref); problem.ExitCode(err) != int(problem.Failed) ||
		!strings.Contains(err.Error(), "Non-existent domain") {
		t.Errorf("%v", err)
	}
}

// TestWithoutXen: a host that no longer runs on Xen has no domains. Its nodes are listed and can be
// removed, but do not start.
func TestWithoutXen(t *testing.T) {
	e, m, asked := ground(t, "exit 1")
	lack := problem.New(problem.Unable, "this host does not run on Xen").Try("boot Xen")
	e.lacks = func() error { return lack }
	e.dom0 = e.lacks
	if caps := e.Capabilities(); caps.Unable != (observe.Missing{What: lack.What, Cure: lack.Cure}) || caps.Accel != "" {
		t.Errorf("%+v", caps)
	}
	if err := e.Start(t.Context(), m.Ref); problem.ExitCode(err) != int(problem.Unable) {
		t.Errorf("it starts: %v", err)
	}
	nodes, err := e.List(t.Context(), "unit-xen")
	if err != nil || len(nodes) != 1 || nodes[0].State != observe.Stopped {
		t.Errorf("%+v, %v", nodes, err)
	}
	if err := e.Runner(m.Ref).Run(t.Context(),
		host.Command{Args: []string{"true"}}); problem.ExitCode(err) != problem.ExitCode(engine.NotRunning(m.Ref)) {
		t.Errorf("a command runs: %v", err)
	}
	if err := e.Destroy(t.Context(), m.Ref); err != nil || asked() != "" {
		t.Errorf("%v; xl is asked: %s", err, asked())
	}
}

// TestEndWithout: domains on a Dom0 can be ended even if it lacks something to start them. A
// stopped node can be removed without xl.
func TestEndWithout(t *testing.T) {
	e, m, asked := ground(t, "")
	e.lacks = func() error { return errors.New("no QEMU for Xen") }
	if err := e.Destroy(t.Context(), m.Ref); err != nil || asked() != "destroy orrery-unit-xen-7" {
		t.Errorf("%v; xl is asked: %s", err, asked())
	}
	e, m, _ = ground(t, "")
	t.Setenv("PATH", t.TempDir())
	if err := e.Destroy(t.Context(), m.Ref); err != nil {
		t.Error(err)
	}
}

// TestGoOn: a paused domain continues even if its QEMU was never frozen. The mark stays until the
// domain continues.
func TestGoOn(t *testing.T) {
	e, m, asked := ground(t, "")
	must(t, os.WriteFile(m.FreezingFile(), nil, 0o600))
	if !m.frozen() {
		t.Error("a node that may be paused is listed as one that runs")
	}
	must(t, e.Thaw(t.Context(), m.Ref))
	if m.frozen() || asked() != "" {
		t.Errorf("it is frozen still, or xl is asked of a node that does not run: %s", asked())
	}
}

// TestSweepAfterKills: a sweep repairs what a killed run has left of a stopped node. It ends the
// domain that the run was starting, and removes marks.
func TestSweepAfterKills(t *testing.T) {
	e, m, asked := ground(t, "")
	for _, mark := range []string{m.StartingFile(), m.FreezingFile()} {
		if err := os.WriteFile(mark, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Sweep(t.Context(), "unit-xen"); err != nil || asked() != "destroy orrery-unit-xen-7" {
		t.Errorf("%v; xl is asked: %s", err, asked())
	}
	for _, mark := range []string{m.StartingFile(), m.FreezingFile(), m.Run} {
		if _, err := os.Lstat(mark); err == nil {
			t.Errorf("%s is left", mark)
		}
	}
	if err := os.WriteFile(m.StoppingFile(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := e.Sweep(t.Context(), "unit-xen"); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(m.StoppingFile()); err == nil {
		t.Error("a node that has stopped is still stopping")
	}
}

// TestNamed: a process is found by its kernel's name, not by that of another process.
func TestNamed(t *testing.T) {
	ours := os.Getpid()
	comm, err := os.ReadFile("/proc/self/comm")
	must(t, err)
	for name, want := range map[string]int{strings.TrimSpace(string(comm)): ours, "xl": 0, "": 0} {
		if got := findByName([]int{1 << 30, ours}, func(comm string) bool { return comm == name }); got != want {
			t.Errorf("%q: %d", name, got)
		}
	}
}

// TestDown: down considers only the domain with the given name.
func TestDown(t *testing.T) {
	all := []xl.Domain{{Name: "Domain-0", State: "r-----"}, {Name: "orrery-a-1", State: "---s--"},
		{Name: "orrery-a-11", State: "-b----"}, {Name: "orrery-a-2", State: "---sc-"}}
	for name, want := range map[string]bool{"orrery-a-1": true, "orrery-a-11": false, "orrery-a-2": true,
		"orrery-a-3": false} {
		if hasShutDown(all, name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}
