package kvm

import (
	"context"
	"strings"
	"testing"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/enginetest"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/site/spec"
	"orrery/test/need"
)

const testSite = "it-kvm"

// ground is an engine with layers and bridges for its nodes.
type ground struct {
	provisioned
	enginetest.Env
}

func newEngine() *Engine { return New(enginetest.DirsOf(Name), image.Open(need.State())) }

func newGround(t *testing.T) ground {
	t.Helper()
	need.Integration(t)
	need.Guest(t)
	e := newEngine()
	enginetest.Clean(t, e, e.Dirs)
	g := ground{provisioned{e}, enginetest.NewEnv(t, e.Nodes, testSite, "10.99.216.")}
	g.BuildKernel(t)
	return g
}

// reboot makes a guest reboot by itself.
func (g ground) reboot(t *testing.T, ref engine.Ref) {
	t.Helper()
	boot := func() string {
		var out strings.Builder
		_ = g.Runner(ref).Run(t.Context(), host.Command{Args: []string{"cat", "/proc/sys/kernel/random/boot_id"},
			Stdout: &out})
		return out.String()
	}
	before := boot()
	_ = g.Runner(ref).Run(t.Context(), host.Command{Args: []string{"systemctl", "--no-block", "reboot"}})
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if now := boot(); now != "" && now != before {
			return
		}
		if time.Since(begun) > 6*time.Minute {
			t.Fatalf("node %s does not come back", ref.Name)
		}
	}
}

func TestEngine(t *testing.T) {
	g := newGround(t)
	f := g.Fixture(g.provisioned)
	f.Within, f.Reboot = 6*time.Minute, g.reboot
	g.AllowRouted(t, "10.99.218.", &f)
	enginetest.Run(t, func(*testing.T) enginetest.Fixture { return f })
}

// provisioned provides volumes before a node starts, as package local does. Its guests boot only
// until systemd accepts commands, because in emulation everything else that Debian starts takes
// most of the time. TestMachines and TestMixed boot complete systems.
type provisioned struct{ *Engine }

func (p provisioned) Create(ctx context.Context, n *spec.Node) error {
	if err := p.Engine.Create(ctx, n); err != nil {
		return err
	}
	nothing := host.File{Path: "/etc/systemd/system/default.target", Content: []byte("[Unit]\nDefaultDependencies=no\n"),
		Mode: 0o644}
	return p.Inject(ctx, engine.RefOf(n), nothing)
}

func (p provisioned) Start(ctx context.Context, ref engine.Ref) error {
	if err := enginetest.CreateRecordedVolumes(p.Nodes, ref); err != nil {
		return err
	}
	return p.Engine.Start(ctx, ref)
}

func (p provisioned) Remount(ctx context.Context, n *spec.Node) error {
	if err := enginetest.CreateVolumes(p.Dirs, n); err != nil {
		return err
	}
	return p.Engine.Remount(ctx, n)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
