package mpi

import (
	"context"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"orrery/internal/host"
)

// elsewhere runs a command in a mount namespace that looks like a host without Open MPI. The layer
// is below $1.
const elsewhere = `mount --bind / "$1"
for d in /usr/lib/*/openmpi /usr/lib/*/pmix2 /usr/lib/*/hwloc /etc/openmpi /usr/share/openmpi; do
	[ ! -d $d ] || mount -t tmpfs none $d
done
shift
exec "$@"`

// TestBelowRoot: on the bare host the layer's dynamic linker starts the layer's programs, and Open
// MPI finds all of its own files there.
func TestBelowRoot(t *testing.T) {
	g := newGround(t)
	root := filepath.Join(filepath.Dir(g.program), "layer")
	linker := strings.TrimSpace(sh(t, `mkdir "$1"
for l in /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1; do [ ! -e $l ] || readlink -f $l; done`, root))
	libraries := root + filepath.Dir(linker)
	way := g.near.Runner.(inside).way
	g.near.Runner = inside{host.Local{Name: "bare"}, append(append([]string(nil), way...),
		"unshare", "-m", "--propagation", "private", "/bin/sh", "-ec", elsewhere, "sh", root)}
	g.near.Name, g.near.Root = "bare", root
	g.near.Programs = func(name string) []string {
		file := "/usr/bin/" + name
		if name == programName {
			file = g.program
		}
		return []string{root + linker, "--library-path", libraries, "--argv0", name, root + file}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	m := made(t, quick)
	trial := g.trial(map[string][]byte{})
	if err := m.Check(ctx, trial); err != nil {
		t.Fatal(err)
	}
	complete(ctx, t, m, trial)
	gone(t, g)
}

// TestRouted: the ends share no network, as with the network kind `routed`.
func TestRouted(t *testing.T) {
	g := newGround(t)
	a, b := g.near.Runner.(inside).way[3], g.far.Runner.(inside).way[3]
	sh(t, `ip -n $1 addr del 10.99.136.1/24 dev here; ip -n $2 addr del 10.99.136.2/24 dev there
ip -n $1 addr add 10.99.136.1/32 dev here; ip -n $2 addr add 10.99.137.2/32 dev there
ip -n $1 route add 10.99.137.2 dev here; ip -n $2 route add 10.99.136.1 dev there`, a, b)
	g.far.Address = netip.MustParseAddr("10.99.137.2")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	complete(ctx, t, made(t, quick), g.trial(map[string][]byte{}))
	gone(t, g)
}

// TestCopies: two copies between the same ends share the link and do not disturb one another
// otherwise.
func TestCopies(t *testing.T) {
	g := newGround(t)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	var all sync.WaitGroup
	for n := range 2 {
		all.Go(func() {
			trial := g.trial(map[string][]byte{})
			trial.Copy, trial.Of = n, 2
			if result, err := made(t, quick).Run(ctx, trial); err != nil || len(strange(result.Labels)) > 0 {
				t.Errorf("copy %d: %v %v", n, err, result.Labels)
			}
		})
	}
	all.Wait()
	gone(t, g)
}
