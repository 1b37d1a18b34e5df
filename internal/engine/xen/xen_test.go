package xen

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/enginetest"
	"orrery/internal/host"
	"orrery/internal/host/qemu"
	"orrery/internal/image"
	"orrery/internal/site/spec"
	"orrery/test/need"
)

const testSite = "it-xen"

// world is an engine on a played Dom0, with layers and bridges for its nodes.
type world struct {
	provisioned
	enginetest.Env
	dom0 dom0
}

func newWorld(t *testing.T) world {
	t.Helper()
	need.Integration(t)
	need.Guest(t)
	if _, err := os.Stat("/proc/xen/capabilities"); err == nil {
		t.Skip("this machine runs on Xen: scenarios/metal/run --xen tries the engine with it")
	}
	e := New(enginetest.DirsOf(Name), image.Open(need.State()))
	e.lacks, e.dom0 = func() error { _, err := qemu.Guest(); return err }, func() error { return nil }
	sweepDom0s(t)
	d := newDom0(t)
	enginetest.Clean(t, e, e.Dirs)
	w := world{provisioned{e}, enginetest.NewEnv(t, e.Nodes, testSite, "10.99.221."), d}
	w.BuildKernel(t) // for the small kernel, which nothing boots
	return w
}

// reboot makes a guest reboot by itself, after which it is another domain.
func (w world) reboot(t *testing.T, ref engine.Ref) {
	t.Helper()
	domain := w.machine(ref).domain()
	before, err := w.dom0.domain(domain)
	must(t, err)
	_ = w.Runner(ref).Run(t.Context(), host.Command{Args: []string{"kill", "-s", fmt.Sprint(int(reboots)), "1"}})
	eventually(t, "another domain", func() bool {
		after, err := w.dom0.domain(domain)
		return err == nil && after.ID != before.ID
	})
	eventually(t, "an agent", func() bool {
		return w.Runner(ref).Run(t.Context(), host.Command{Args: []string{"true"}}) == nil
	})
}

// TestEngine: guests of Xen behave as all nodes do, as far as a played Dom0 can show. Xen and what
// only guests' kernels do is missing.
func TestEngine(t *testing.T) {
	w := newWorld(t)
	f := w.Fixture(w.provisioned)
	f.Reboot = w.reboot
	w.AllowRouted(t, "10.99.222.", &f)
	enginetest.Run(t, func(*testing.T) enginetest.Fixture { return f })
	t.Run("Mishaps", func(t *testing.T) { mishaps(t, w) })
	t.Run("Disks", func(t *testing.T) { disksOfGuests(t, w) })
}

// provisioned provides volumes before a node starts, as package local does.
type provisioned struct{ *Engine }

func (p provisioned) Start(ctx context.Context, ref engine.Ref) error {
	if err := enginetest.CreateRecordedVolumes(p.Nodes, ref); err != nil {
		return err
	}
	return p.Engine.Start(ctx, ref)
}

// wantNothing wants that nothing is left of a node's domain, neither in Xen nor on the host.
func (w world) wantNothing(t *testing.T, n *spec.Node) {
	t.Helper()
	m := w.machine(engine.RefOf(n))
	if one, err := w.dom0.domain(m.domain()); err == nil {
		t.Errorf("domain %d is left", one.ID)
	}
	if all := m.Group().Processes(); len(all) > 0 {
		t.Errorf("processes %v are left", all)
	}
	for _, path := range []string{m.Run, filepath.Join("/sys/class/net", n.NICs[0].HostIfName), m.StartingFile(),
		m.StoppingFile(),
		m.FreezingFile()} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}
}

func (w world) state(t *testing.T, n *spec.Node) string {
	t.Helper()
	nodes, err := w.List(t.Context(), n.Site)
	must(t, err)
	for _, one := range nodes {
		if one.ID == n.ID {
			return string(one.State)
		}
	}
	return ""
}

// words returns the text of an error, or "" if err is nil.
func words(err error) string {
	if err == nil {
		return ""
	}
	return strings.TrimSpace(err.Error())
}

// within returns a context that ends soon.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}
