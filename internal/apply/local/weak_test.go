package local_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"orrery/internal/apply/local/backends"
	"orrery/internal/engine"
	"orrery/internal/engine/fake"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/network"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/release"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/site/twin"
	"orrery/internal/volume"
)

// errWeak is the error of a backend call that is made to fail.
var errWeak = errors.New("it has failed, as ordered")

// weak makes one call of a worker's backends fail, before the call has done anything.
type weak struct {
	calls  map[string]int
	name   string
	nth    int // starting at 1
	struck bool
}

// order makes the nth call of a name fail, and forgets all former calls.
func (w *weak) order(name string, nth int) {
	*w = weak{calls: map[string]int{}, name: name, nth: nth}
}

func (w *weak) strike(name string) error {
	w.calls[name]++
	if name == w.name && w.calls[name] == w.nth {
		w.struck = true
		return errWeak
	}
	return nil
}

// weakly makes a call unless it is made to fail.
func weakly[T any](w *weak, name string, call func() (T, error)) (T, error) {
	if err := w.strike(name); err != nil {
		var zero T
		return zero, err
	}
	return call()
}

func (w *weak) try(name string, call func() error) error {
	if err := w.strike(name); err != nil {
		return err
	}
	return call()
}

type storing = backends.Layers // another name, because Layers has a method Layers

type (
	weakNetworks struct {
		backends.Networks
		*weak
	}
	weakLayers struct {
		storing
		*weak
	}
	weakVolumes struct {
		backends.Volumes
		*weak
	}
	weakKernel struct {
		backends.Kernel
		*weak
	}
	weakRecords struct {
		backends.Records
		*weak
	}
	weakClaims struct {
		backends.Claims
		*weak
	}
	weakEngine struct {
		*fake.Engine
		*weak
	}
	weakRunner struct {
		host.Runner
		*weak
	}
)

func (n weakNetworks) Observe(key string) ([]observe.Network, error) {
	return weakly(n.weak, "Networks.Observe", func() ([]observe.Network, error) { return n.Networks.Observe(key) })
}

func (n weakNetworks) Make(ctx context.Context, of spec.Network, nodes func() ([]network.Port, error)) error {
	return n.try("Networks.Make", func() error { return n.Networks.Make(ctx, of, nodes) })
}

func (n weakNetworks) Remove(ctx context.Context, of spec.Network) error {
	return n.try("Networks.Remove", func() error { return n.Networks.Remove(ctx, of) })
}

func (n weakNetworks) MoveLinks(ctx context.Context, moves []network.Move, live ...string) error {
	return n.try("Networks.MoveLinks", func() error { return n.Networks.MoveLinks(ctx, moves, live...) })
}

func (n weakNetworks) AddAntiSpoof(ctx context.Context, ports []network.Port) error {
	return n.try("Networks.AddAntiSpoof", func() error { return n.Networks.AddAntiSpoof(ctx, ports) })
}

func (n weakNetworks) RemoveAntiSpoof(ctx context.Context, site string, still []network.Port) error {
	return n.try("Networks.RemoveAntiSpoof", func() error { return n.Networks.RemoveAntiSpoof(ctx, site, still) })
}

func (n weakNetworks) Sweep(ctx context.Context) error {
	return n.try("Networks.Sweep", func() error { return n.Networks.Sweep(ctx) })
}

func (n weakNetworks) Around(key string) (all []observe.Address, around observe.HostNetworking, err error) {
	err = n.try("Networks.Around", func() (wrong error) { all, around, wrong = n.Networks.Around(key); return wrong })
	return all, around, err
}

func (l weakLayers) Layers() (map[string]bool, error) {
	return weakly(l.weak, "Layers.Layers", l.storing.Layers)
}

func (l weakLayers) BuildBase(ctx context.Context, of *spec.Layer, m site.Mirror, say func(string)) error {
	return l.try("Layers.BuildBase", func() error { return l.storing.BuildBase(ctx, of, m, say) })
}

func (l weakLayers) BuildLayer(ctx context.Context, of *spec.Layer, m site.Mirror, fill func(context.Context,
	host.Runner) error, say func(string)) error {
	return l.try("Layers.BuildLayer", func() error { return l.storing.BuildLayer(ctx, of, m, fill, say) })
}

func (l weakLayers) Sweep() error { return l.try("Layers.Sweep", l.storing.Sweep) }

func (v weakVolumes) List(key string) ([]observe.Volume, error) {
	return weakly(v.weak, "Volumes.List", func() ([]observe.Volume, error) { return v.Volumes.List(key) })
}

func (v weakVolumes) Provide(ctx context.Context, n *spec.Node, m spec.Mount, root volume.NodeRoot) error {
	return v.try("Volumes.Provide", func() error { return v.Volumes.Provide(ctx, n, m, root) })
}

func (v weakVolumes) ProvideCopy(ctx context.Context, n *spec.Node, m spec.Mount, root volume.NodeRoot,
	still volume.FreezeFunc) (volume.CopyResult, error) {
	return weakly(v.weak, "Volumes.ProvideCopy", func() (volume.CopyResult,
		error) {
		return v.Volumes.ProvideCopy(ctx, n, m, root, still)
	})
}

func (v weakVolumes) Erase(path string) error {
	return v.try("Volumes.Erase", func() error { return v.Volumes.Erase(path) })
}

func (v weakVolumes) Drop(n *spec.Node, m spec.Mount) error {
	return v.try("Volumes.Drop", func() error { return v.Volumes.Drop(n, m) })
}

func (v weakVolumes) DropCopies(key string, release int) error {
	return v.try("Volumes.DropCopies", func() error { return v.Volumes.DropCopies(key, release) })
}

func (v weakVolumes) Sweep(key string) error {
	return v.try("Volumes.Sweep", func() error { return v.Volumes.Sweep(key) })
}

func (v weakVolumes) Release() error { return v.try("Volumes.Release", v.Volumes.Release) }

func (k weakKernel) Prepare(ctx context.Context, settings map[string]string) error {
	return k.try("Kernel.Prepare", func() error { return k.Kernel.Prepare(ctx, settings) })
}

func (k weakKernel) Restore(ctx context.Context) error {
	return k.try("Kernel.Restore", func() error { return k.Kernel.Restore(ctx) })
}

func (r weakRecords) Read(key string, id int) (*nodedir.Record, error) {
	return weakly(r.weak, "Records.Read", func() (*nodedir.Record, error) { return r.Records.Read(key, id) })
}

func (r weakRecords) All(key string) ([]nodedir.Found, error) {
	return weakly(r.weak, "Records.All", func() ([]nodedir.Found, error) { return r.Records.All(key) })
}

func (c weakClaims) Elsewhere(key string) error {
	return c.try("Claims.Elsewhere", func() error { return c.Claims.Elsewhere(key) })
}

func (e weakEngine) List(ctx context.Context, key string) ([]observe.Node, error) {
	return weakly(e.weak, "List", func() ([]observe.Node, error) { return e.Engine.List(ctx, key) })
}

func (e weakEngine) Create(ctx context.Context, n *spec.Node) error {
	return e.try("Create", func() error { return e.Engine.Create(ctx, n) })
}

func (e weakEngine) Change(ctx context.Context, n *spec.Node) error {
	return e.try("Change", func() error { return e.Engine.Change(ctx, n) })
}

func (e weakEngine) Start(ctx context.Context, ref engine.Ref) error {
	return e.try("Start", func() error { return e.Engine.Start(ctx, ref) })
}

func (e weakEngine) Stop(ctx context.Context, ref engine.Ref) error {
	return e.try("Stop", func() error { return e.Engine.Stop(ctx, ref) })
}

func (e weakEngine) Destroy(ctx context.Context, ref engine.Ref) error {
	return e.try("Destroy", func() error { return e.Engine.Destroy(ctx, ref) })
}

func (e weakEngine) SetProgress(ctx context.Context, ref engine.Ref, m engine.Progress) error {
	return e.try("SetProgress", func() error { return e.Engine.SetProgress(ctx, ref, m) })
}

func (e weakEngine) Replace(ctx context.Context, n *spec.Node) error {
	return e.try("Replace", func() error { return e.Engine.Replace(ctx, n) })
}

func (e weakEngine) Restore(ctx context.Context, ref engine.Ref) error {
	return e.try("Restore", func() error { return e.Engine.Restore(ctx, ref) })
}

func (e weakEngine) Settle(ctx context.Context, ref engine.Ref) error {
	return e.try("Settle", func() error { return e.Engine.Settle(ctx, ref) })
}

func (e weakEngine) Remount(ctx context.Context, n *spec.Node) error {
	return e.try("Remount", func() error { return e.Engine.Remount(ctx, n) })
}

func (e weakEngine) Runner(ref engine.Ref) host.Runner {
	return weakRunner{e.Engine.Runner(ref), e.weak}
}

func (r weakRunner) Run(ctx context.Context, c host.Command) error {
	return r.try("Run", func() error { return r.Runner.Run(ctx, c) })
}

func (r weakRunner) Put(ctx context.Context, files ...host.File) error {
	return r.try("Put", func() error { return r.Runner.Put(ctx, files...) })
}

// weakWorld returns a world whose backends can fail.
func weakWorld(t *testing.T) (*world, *weak) {
	t.Helper()
	w, of := newWorld(t), &weak{}
	g := &w.host.Backends
	*g = backends.Set{
		Networks: weakNetworks{g.Networks, of}, Traffic: g.Traffic, Layers: weakLayers{g.Layers, of}, Packages: g.Packages,
		Volumes: weakVolumes{g.Volumes, of}, Kernel: weakKernel{g.Kernel, of},
		Records: weakRecords{g.Records, of}, Claims: weakClaims{g.Claims, of}, Timers: g.Timers,
		Hosts: g.Hosts,
	}
	w.host.Engines["fake"] = weakEngine{w.below.Engine, of}
	of.order("", 0)
	return w, of
}

// life does everything that a worker does for a site, from the first up to the end, as a series of
// named actions.
func (w *world) life(do func(name string, act func() error)) {
	ctx := w.Context()
	carry := func(what string, p *plan.Plan, err error) {
		w.Helper()
		w.must(err)
		for _, s := range p.Steps {
			do(what+": "+s.String(), func() error { return w.Do(ctx, s, func(string) {}) })
		}
		do(what+": settle", func() error { return w.Runs.DiscardUndo(ctx, p.Steps) })
	}
	look := func() (seen []observe.Host) {
		do("observe", func() error {
			h, err := w.Observe(ctx)
			seen = []observe.Host{h}
			return err
		})
		return seen
	}
	goal := func() plan.Goal { return plan.Goal{Releases: w.releases()} }
	do("sweep", func() error { return w.Runs.Sweep(ctx) })
	p, err := plan.Up(w.site, look(), goal())
	carry("up", p, err)
	do("present", func() error { _, err := w.Nodes.WithOwner(ctx, false); return err })
	w.site.Roles[0].Files[0].Content = []byte("second of {{.Node.Name}}\n")
	w.site.Roles[0].Apt = []string{"jq"}
	p, err = plan.Up(w.site, look(), goal())
	carry("another up", p, err)
	none, err := twin.Release(w.site, 0)
	w.must(err)
	w.release(0, none)
	w.stage(700)
	for _, to := range []int{700, 0} {
		p, err = release.Switch(w.site, look(), release.Goal{To: map[string]int{"db": to, "web": to},
			Releases: w.releases()})
		carry(fmt.Sprint("switch to ", to), p, err)
	}
	carry("down", plan.Down(w.site, look(), plan.Goal{Volumes: true, Releases: w.releases()}), nil)
	do("forget", func() error {
		return w.Do(ctx, &plan.Step{Kind: plan.ForgetRelease, Host: "sv1", Release: 700}, func(string) {})
	})
}

// TestWeakGround: if a backend call fails, the action of the worker fails, and succeeds when it is
// repeated. So no error is ignored, and none damages the state.
func TestWeakGround(t *testing.T) {
	w, of := weakWorld(t)
	calls := map[string]map[string]int{}
	w.life(func(name string, act func() error) {
		of.order("", 0)
		if err := act(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		calls[name] = of.calls
	})
	w, of = weakWorld(t)
	tried := 0
	w.life(func(name string, act func() error) {
		for _, call := range slices.Sorted(maps.Keys(calls[name])) {
			for nth := range calls[name][call] {
				of.order(call, nth+1)
				err := act()
				if !of.struck {
					break // less is left to do the second time
				}
				if strings.Contains(name, ": check: ") && call == "Run" {
					continue // a failed health check is tried again
				}
				if tried++; !strings.Contains(fmt.Sprint(err), errWeak.Error()) {
					t.Errorf("%s: %s (call %d) fails, and it says %v", name, call, nth+1, err)
				}
			}
		}
		of.order("", 0)
		if err := act(); err != nil {
			t.Fatalf("%s, after all that failed: %v", name, err)
		}
	})
	if tried < 100 {
		t.Errorf("%d calls were tried", tried)
	}
}
