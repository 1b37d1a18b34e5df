package kvm

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/argv"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/image/kernel"
	"orrery/internal/site/spec"
	"orrery/test/need"
)

// TestKicks: a machine that loads another's state uses event_idx if that one does, as one started
// by an earlier version.
func TestKicks(t *testing.T) {
	for spares, want := range map[string]string{"true": "queue-size=256", "false": "queue-size=256,event_idx=off"} {
		run := t.TempDir()
		serveMonitor(t, run, func(command string, of map[string]any) (string, string, bool) {
			switch {
			case command == "qom-list":
				return `"return":[{"name":"type","type":"string"},{"name":"device[0]","type":"child<pvpanic>"},{"name":"device[2]","type":"child<vhost-user-fs-pci>"}]`,
					"", false
			case of["property"] == "event_idx" && of["path"] == "/machine/peripheral-anon/device[2]":
				return `"return":` + spares, "", false
			case command == "qom-get":
				return `"return":"pc-q35-8.2-machine"`, "", false
			}
			return `"return":[]`, "", false
		})
		q, err := qmp.Dial(t.Context(), filepath.Join(run, monitorSocket))
		must(t, err)
		defer q.Close()
		traits, err := traitsOf(t.Context(), q)
		must(t, err)
		line := &argv.Machine{Node: &spec.Node{}, Boot: &kernel.Boot{}}
		must(t, traits.Apply(line))
		args, _, err := line.CommandLine()
		must(t, err)
		if !slices.ContainsFunc(args, func(a string) bool { return strings.HasSuffix(a, want) }) {
			t.Errorf("event_idx=%s: %q", spares, args)
		}
	}
}

// TestKick: even on a busy host, a machine that was frozen while it waited for files continues.
func TestKick(t *testing.T) {
	need.NewQEMU(t)
	g := newGround(t)
	n := g.Node("waiting", 5)
	ref := engine.RefOf(n)
	must(t, g.Create(t.Context(), n))
	must(t, g.Start(t.Context(), ref))
	last := -1
	c := g.counts(t, n, "0")
	for range 4 {
		busy := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
		busy.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		must(t, busy.Start())
		t.Cleanup(func() { _ = busy.Wait() })
	}
	for range 300 {
		c.goOn(t, &last)
		must(t, g.Freeze(t.Context(), ref))
		must(t, g.Thaw(t.Context(), ref))
	}
}
