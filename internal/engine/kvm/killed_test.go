package kvm

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/enginetest"
	"orrery/internal/engine/nodedir"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
	"orrery/test/need"
)

// TestRestless is the program that TestKilledRemount kills.
func TestRestless(t *testing.T) { enginetest.StressLoop(t, newEngine(), testSite, choices()) }

// choices returns the sets of volumes that the machine gets in turn.
func choices() [][]spec.Mount {
	a, b, c := kept("a", "/srv/data"), kept("b", "/srv/data"), kept("c", "/srv/data/in")
	return [][]spec.Mount{{a}, {b, c}, {b}, {a, c}, nil}
}

func kept(name, path string) spec.Mount { return spec.Mount{Volume: name, Path: path} }

// volumes are those of a running machine whose changes are killed.
type volumes struct {
	ground
	*testing.T
	n *spec.Node
	m machine
}

// dir returns the directory of a volume. Each contains a file with the volume's name.
func (v *volumes) dir(m spec.Mount) string { return volume.Path(v.Dirs, v.n.Site, v.n.Name, m) }

// to does what the next run does: it sweeps, and changes the volumes. Then it checks that the
// machine sees these volumes and no others, and that the record lists them.
func (v *volumes) to(mounts []spec.Mount) {
	v.Helper()
	must(v.T, v.Sweep(v.Context(), testSite))
	changed := *v.n
	changed.Mounts = mounts
	must(v.T, v.Remount(v.Context(), &changed))
	want := map[string]string{"/srv/data": "", "/srv/data/in": ""}
	for _, m := range mounts {
		want[m.Path] = m.Volume
	}
	for path, name := range want {
		if got := v.says(v.T, v.m.Ref, "sh", "-c", "cat "+path+"/name 2>/dev/null || true"); got != name {
			v.Errorf("at %s is %q, want %q", path, got, name)
		}
	}
	if r, err := v.m.Read(); err != nil || !slices.Equal(r.Mounts, mounts) {
		v.Errorf("on record is %+v, want %+v: %v", r.Mounts, mounts, err)
	}
}

// honest checks that the record lists at least the volumes that are mounted.
func (v *volumes) honest(when string) {
	v.Helper()
	v.WantRecorded(v.T, when, v.n, kept("a", "/srv/data"), kept("b", "/srv/data"), kept("c", "/srv/data/in"))
}

// points are the steps after which a change of volumes may be killed, each with what has been done
// until then.
var points = []struct {
	name string
	do   func(v *volumes, s *remounting, wanted []nodedir.Mount, doomed []string)
}{
	{"noted", func(*volumes, *remounting, []nodedir.Mount, []string) {}},
	{"forgotten by the guest", func(v *volumes, s *remounting, _ []nodedir.Mount, doomed []string) {
		must(v.T, s.unmountInGuest(v.Context(), doomed))
	}},
	{"half taken away", func(v *volumes, s *remounting, _ []nodedir.Mount, doomed []string) {
		must(v.T, s.unmount(v.Context(), doomed[:1]))
	}},
	{"taken away", func(v *volumes, s *remounting, _ []nodedir.Mount, doomed []string) {
		must(v.T, s.unmount(v.Context(), doomed))
	}},
	{"half mounted", func(v *volumes, s *remounting, wanted []nodedir.Mount, doomed []string) {
		must(v.T, s.unmount(v.Context(), doomed))
		must(v.T, s.mount(wanted[:1]))
	}},
	{"mounted", func(v *volumes, s *remounting, wanted []nodedir.Mount, doomed []string) {
		must(v.T, s.unmount(v.Context(), doomed))
		must(v.T, s.mount(wanted))
	}},
	{"half found", func(v *volumes, s *remounting, wanted []nodedir.Mount, doomed []string) {
		must(v.T, s.unmount(v.Context(), doomed))
		must(v.T, s.mount(wanted))
		must(v.T, s.findInGuest(v.Context(), []string{wanted[0].Path}))
	}},
	{"found", func(v *volumes, s *remounting, wanted []nodedir.Mount, doomed []string) {
		must(v.T, s.unmount(v.Context(), doomed))
		must(v.T, s.mountMissing(v.Context(), wanted))
	}},
}

// TestKilledRemount: after whatever step a change of volumes is killed, the record lists at least
// the mounted volumes. The next run can complete the change, undo it, or make another.
func TestKilledRemount(t *testing.T) {
	g := newGround(t)
	n := g.Node("killed", 9)
	v := &volumes{g, t, n, g.machine(engine.RefOf(n))}
	// as package local does before it provides volumes, because nodes must be able to pass through
	must(t, os.MkdirAll(filepath.Dir(filepath.Dir(v.m.Path())), 0o755))
	a, b, c := kept("a", "/srv/data"), kept("b", "/srv/data"), kept("c", "/srv/data/in")
	for _, m := range []spec.Mount{a, b, c} {
		n.Mounts = []spec.Mount{m}
		must(t, enginetest.CreateVolumes(g.Dirs, n))
		must(t, os.WriteFile(v.dir(m)+"/name", []byte(m.Volume), 0o644))
	}
	n.Mounts = []spec.Mount{a, c}
	must(t, g.Create(t.Context(), n))
	must(t, g.Start(t.Context(), v.m.Ref))
	old, next := []spec.Mount{a, c}, []spec.Mount{b, kept("c", "/srv/data/in")}
	after := [][]spec.Mount{next, old, nil}
	begun := time.Now()
	for i, p := range points {
		v.to(old)
		r, err := v.m.Read()
		must(t, err)
		must(t, v.m.WriteMounts(r, append([]spec.Mount{a}, next...))) // what is removed, and what is added
		s := &remounting{nodes: g.Nodes, m: v.m, agent: g.volumeAgent(v.m), ids: r.IDs(), sharer: v.m.virtiofsdPID()}
		wanted := g.Volumes(n, next)
		table, err := s.volumeMounts()
		must(t, err)
		doomed, err := mountsToRemove(table, wanted)
		must(t, err)
		p.do(v, s, wanted, doomed)
		v.honest(p.name)
		v.to(after[i%len(after)])
	}
	t.Logf("%d changes of volumes, their looks and as many halves took %v", 2*len(points),
		time.Since(begun).Round(time.Millisecond))
	for i := range need.Kills(6, 40) {
		enginetest.KillStressLoop(t, 1500*time.Millisecond)
		v.honest(fmt.Sprintf("round %d", i))
		v.to(choices()[rand.IntN(len(choices()))])
		if v.m.frozenOrHalted() {
			t.Errorf("round %d: the machine stands still", i)
		}
	}
	must(t, v.m.Group().Kill(t.Context()))
}
