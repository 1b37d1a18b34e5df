package local

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"orrery/internal/apply/local/backends"
	"orrery/internal/engine"
	"orrery/internal/engine/fake"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/role"
	"orrery/internal/site/spec"
	"orrery/test/need"
)

// sharers returns a host with three running nodes, two of which share a volume.
func sharers(t *testing.T) (*Host, *fake.Engine) {
	t.Helper()
	e := fake.New()
	h := ThisMachine("local", "karoo", host.Dirs{State: t.TempDir()}, map[string]engine.Engine{"fake": e}, nil)
	for id, name := range []string{"a", "b", "c"} {
		n := &spec.Node{Site: "karoo", Name: name, ID: id + 1, Engine: "fake", Mounts: []spec.Mount{{Volume: "own"}}}
		if name != "c" {
			n.Mounts = append(n.Mounts, spec.Mount{Volume: "common", Shared: true})
		}
		if err := e.Create(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		if err := e.Start(t.Context(), engine.RefOf(n)); err != nil {
			t.Fatal(err)
		}
	}
	return h, e
}

func states(t *testing.T, e *fake.Engine) string {
	t.Helper()
	nodes, err := e.List(context.Background(), "karoo")
	if err != nil {
		t.Error(err)
	}
	text := ""
	for _, n := range nodes {
		if n.State == observe.Frozen {
			text += n.Name
		}
	}
	return text
}

// TestStillSharers: exactly the nodes that write to a volume are frozen while it is copied.
//
// Promise (Trees that others write): A volume of several running nodes is copied while all are
// paused, or not at all. With apply/local.TestStillUnknown, snapshot.TestTakeSharers.
func TestStillSharers(t *testing.T) {
	h, e := sharers(t)
	guarded := ""
	h.Guard = func(nodes ...*spec.Node) (func(), error) {
		for _, n := range nodes {
			guarded += n.Name
		}
		return func() { guarded += " let go" }, nil
	}
	volumes := h.Dirs.Volumes("karoo")
	for path, want := range map[string]string{"common/@all": "ab", "own/a": "a", "own/c": "c", "own/nobody": ""} {
		guarded = ""
		err := h.lifecycle.freezeWriters(filepath.Join(volumes, path))(t.Context(), func(context.Context) error {
			if got := states(t, e); got != want || guarded != want {
				t.Errorf("%s: %q stand still, guarded are %q, want %q", path, got, guarded, want)
			}
			return nil
		})
		if err != nil || states(t, e) != "" {
			t.Errorf("%s: %v, %q stand still", path, err, states(t, e))
		}
	}
}

// TestStillUnknown: if it is unknown which nodes run, or a running node cannot be frozen, nothing
// is copied.
func TestStillUnknown(t *testing.T) {
	h, e := sharers(t)
	never := func(context.Context) error {
		t.Error("it was copied")
		return nil
	}
	path := filepath.Join(h.Dirs.Volumes("karoo"), "own/a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // so that the engine returns an error
	if err := h.lifecycle.freezeWriters(path)(ctx, never); err == nil {
		t.Error("an engine that cannot tell who runs gives no error")
	}
	h.Engines["fake"] = struct{ engine.Engine }{e} // an engine that cannot freeze
	if err := h.lifecycle.freezeWriters(path)(t.Context(), never); problem.ExitCode(err) != int(problem.Unable) {
		t.Errorf("an engine that cannot freeze gives %v", err)
	}
}

// TestStillTogether: if a node takes part in two copies at the same time, neither resumes it during
// the other.
func TestStillTogether(t *testing.T) {
	h, e := sharers(t)
	var all sync.WaitGroup
	for i, path := range []string{"own/a", "common/@all"} {
		all.Go(func() {
			freeze := h.lifecycle.freezeWriters(filepath.Join(h.Dirs.Volumes("karoo"), path))
			err := freeze(t.Context(), func(context.Context) error {
				time.Sleep(time.Duration(20+40*i) * time.Millisecond)
				if states(t, e) == "" {
					t.Errorf("nobody stands still for %s", path)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestVolumesOfRunningNode: an engine that cannot change the volumes of a running node is not asked
// to, and it is an error if they must change.
func TestVolumesOfRunningNode(t *testing.T) {
	need.SameIDs(t)
	dirs := host.Dirs{State: t.TempDir(), Run: t.TempDir()}
	d := fake.OnDisk(dirs)
	n := &spec.Node{Site: "karoo", Name: "a", ID: 1, Engine: "fake", Mounts: []spec.Mount{{Volume: "own", Path: "/srv"}}}
	if err := d.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	place := &SiteState{Name: "local", Key: "karoo", Dirs: dirs, Backends: backends.Local(dirs)}
	only := struct{ engine.Engine }{d} // hides its optional methods
	at := roleRun{roles: &roles{SiteState: place}, engine: only, node: n}
	if err := at.remount(t.Context()); err != nil {
		t.Errorf("the same volumes: %v", err)
	}
	other := *n
	other.Mounts = []spec.Mount{{Volume: "other", Path: "/srv"}}
	at.node = &other
	if err := at.remount(t.Context()); problem.ExitCode(err) != int(problem.Surprise) {
		t.Errorf("other volumes: %v", err)
	}
}

// TestBootTimeout: a node with emulated processors may take longer to boot.
func TestBootTimeout(t *testing.T) {
	for accel, factor := range map[string]time.Duration{"": 1, observe.KVM: 1, observe.TCG: engine.EmulationFactor} {
		only := fake.New()
		only.Can.Accel = accel
		if got := (roleRun{engine: only}).bootTimeout(); got != factor*role.BootTimeout {
			t.Errorf("with %q it is %v", accel, got)
		}
	}
}
