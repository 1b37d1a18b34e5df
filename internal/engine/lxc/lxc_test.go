package lxc

import (
	"context"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/engine/enginetest"
	"orrery/internal/image"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/test/need"
)

const testSite = "it-engine"

// ground is an engine with layers and bridges for its nodes.
type ground struct {
	provisioned
	enginetest.Env
}

func newEngine() *Engine { return New(enginetest.DirsOf(Name), image.Open(need.State())) }

func newGround(t *testing.T) ground {
	t.Helper()
	need.Integration(t)
	e := newEngine()
	enginetest.Clean(t, e, e.Dirs)
	return ground{provisioned{e}, enginetest.NewEnv(t, e.Nodes, testSite, "10.99.99.")}
}

func TestEngine(t *testing.T) {
	g := newGround(t)
	g.otherKinds(t)
	f := g.Fixture(g.provisioned)
	f.ConnectToKind, f.Reboot = onto, g.reboot
	f.InForce = func(_ *testing.T, ref engine.Ref) site.Limits { return g.container(ref).group().Limits() }
	enginetest.Run(t, func(*testing.T) enginetest.Fixture { return f })
}

// provisioned provides volumes before a node starts, as package local does.
type provisioned struct{ *Engine }

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
