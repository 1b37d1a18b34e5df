package mpi

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
	"orrery/test/need"
)

// inside runs commands through another one, such as ip netns exec.
type inside struct {
	host.Local
	way []string
}

func (i inside) Run(ctx context.Context, c host.Command) error {
	c.Args = append(append([]string(nil), i.way...), c.Args...)
	return i.Local.Run(ctx, c)
}

// ground holds two network namespaces with a link between them, and the path of orrery-mpi.
type ground struct {
	near, far *place.Place
	program   string
}

func tools(t *testing.T) {
	t.Helper()
	need.Integration(t)
	for _, tool := range []string{"mpicc", "orterun", "ip", "flock"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s: make test-packages installs it", tool)
		}
	}
}

func sh(t *testing.T, script string, args ...string) string {
	t.Helper()
	out, err := exec.Command("/bin/sh", append([]string{"-ec", script, "sh"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func newGround(t *testing.T) *ground {
	tools(t)
	dir := t.TempDir()
	g := &ground{program: filepath.Join(dir, programName)}
	sh(t, `mpicc -O2 -Wall -Wextra -Werror -o "$1" program/orrery-mpi.c`, g.program)
	a, b := fmt.Sprintf("orm%da", os.Getpid()), fmt.Sprintf("orm%db", os.Getpid())
	remove := func() { _ = exec.Command("/bin/sh", "-c", "ip netns del "+a+"; ip netns del "+b).Run() }
	remove()
	t.Cleanup(remove)
	sh(t, `ip netns add $1; ip netns add $2; ip -n $1 link add here type veth peer name there netns $2
ip -n $1 addr add 10.99.136.1/24 dev here; ip -n $2 addr add 10.99.136.2/24 dev there
for l in $1:lo $1:here $2:lo $2:there; do ip -n ${l%:*} link set ${l#*:} up; done`, a, b)
	end := func(name, node, iface, address string) *place.Place {
		own := filepath.Join(dir, name)
		if err := os.Mkdir(own, 0o755); err != nil {
			t.Fatal(err)
		}
		return &place.Place{Runner: inside{host.Local{Name: name}, []string{"ip", "netns", "exec", node}}, Name: name,
			Dir: own, Root: "/",
			Interface: iface, Address: netip.MustParseAddr(address), Programs: g.words}
	}
	g.near, g.far = end("near", a, "here", "10.99.136.1"), end("far", b, "there", "10.99.136.2")
	return g
}

func (g *ground) words(name string) []string {
	if name == programName {
		return []string{g.program}
	}
	return []string{name}
}

func (g *ground) trial(kept map[string][]byte) *test.Trial {
	return &test.Trial{Near: g.near, Far: g.far, Of: 1,
		Barrier: func(context.Context) error { return nil },
		Keep:    func(name string, content []byte) error { kept[name] = content; return nil }}
}

// quick sets options for a trial of one second.
func quick(o *Options) {
	o.Time = 1
	o.Sizes = []int{0, 1 << 10, 1 << 20}
	o.Collective = []int{64, 1 << 16}
}

// TestTwoEnds: all figures are measured over the intended interface, and nothing is left behind.
func TestTwoEnds(t *testing.T) {
	g := newGround(t)
	m := made(t, quick)
	trial := g.trial(map[string][]byte{})
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := m.Check(ctx, trial); err != nil {
		t.Fatal(err)
	}
	complete(ctx, t, m, trial)
	gone(t, g)
}

func complete(ctx context.Context, t *testing.T, m *mpi, trial *test.Trial) {
	t.Helper()
	result, err := m.Run(ctx, trial)
	if err != nil {
		t.Fatal(err)
	}
	if all := strange(result.Labels); len(all) != 0 {
		t.Errorf("labels: %v", all)
	}
	if len(result.Samples) != len(m.Figures()) {
		t.Fatalf("%d samples for %d figures", len(result.Samples), len(m.Figures()))
	}
	value := map[string]float64{}
	for _, s := range result.Samples {
		value[s.Figure] = s.Value
		t.Logf("%-28s %.4g", s.Figure, s.Value)
	}
	// on a busy machine each message waits for a processor
	if v := value["pingpong latency 0 B"]; v < 1e-6 || v > 1 {
		t.Errorf("a message takes %g s", v)
	}
	if v := value["pingpong bandwidth 1 MiB"]; v < 1e5 || v > 1e12 {
		t.Errorf("bandwidth %g B/s", v)
	}
}

// strange returns the labels without the one for fewer processors than ranks.
func strange(all []test.Label) []test.Label {
	return slices.DeleteFunc(all, func(l test.Label) bool { return l.Name == "ranks" })
}

// TestFourRanks: all benchmarks with two ranks at each end. The counters of the interface between
// the ends account for the payload.
func TestFourRanks(t *testing.T) {
	g := newGround(t)
	m := made(t, func(o *Options) { quick(o); o.Ranks, o.Benchmarks, o.Time = 4, benchmarks, 2 })
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	result, err := m.Run(ctx, g.trial(map[string][]byte{}))
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Samples) != len(m.Figures()) {
		t.Errorf("%d samples for %d figures", len(result.Samples), len(m.Figures()))
	}
	if all := strange(result.Labels); len(all) != 0 {
		t.Errorf("labels: %v", all)
	}
	d := result.Detail.(Detail)
	if d.Sent == 0 || d.Received == 0 || d.Interfaces["here"].Sent < d.Sent {
		t.Errorf("%d bytes of payload, and %+v at the interface", d.Sent, d.Interfaces["here"])
	}
	gone(t, g)
}

// gone checks that no process and no file of a trial is left.
func gone(t *testing.T, g *ground) {
	t.Helper()
	var left string
	for range 300 {
		out, _ := exec.Command("/bin/sh", "-c", `pgrep -af "$1" | grep -v pgrep`, "sh", filepath.Dir(g.program)).Output()
		files, _ := filepath.Glob(filepath.Join(filepath.Dir(g.program), "*", "orrery-mpi", "*"))
		if left = string(out) + strings.Join(files, " "); left == "" {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("left behind:\n%s", left)
}

// TestEnded: a cancelled trial leaves nothing behind.
func TestEnded(t *testing.T) {
	g := newGround(t)
	m := made(t, func(o *Options) { quick(o); o.Time = 60 })
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if _, err := m.Run(ctx, g.trial(map[string][]byte{})); err == nil {
		t.Error("a trial that was ended gave a result")
	}
	gone(t, g)
}

// TestOtherPath: traffic over another interface than intended is reported.
func TestOtherPath(t *testing.T) {
	g := newGround(t)
	// Interface also selects the interface for the measurement, so the test uses it only for the
	// counters.
	g.near.Interface = "lo"
	counted := g.trial(map[string][]byte{})
	m := made(t, quick)
	seen := tally{"lo": {Received: 1, Sent: 1}, "here": {Received: 1 << 40, Sent: 1 << 40}}
	got := measured{sent: 100, received: 100}
	if labels := checkTraffic(counted.Near.Interface, seen, got); len(labels) != 1 ||
		!strings.Contains(labels[0].Why, "those of here as many") {
		t.Errorf("%v", labels)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := m.Check(ctx, counted); err == nil {
		t.Error("messages went by an interface that does not lead to the far end")
	}
	gone(t, g)
}

// TestNoDaemon: a failure at the far end is reported at once, and not as a timeout of mpirun.
func TestNoDaemon(t *testing.T) {
	g := newGround(t)
	g.far.Programs = func(name string) []string { return []string{"no-such-" + name} }
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err := made(t, quick).Check(ctx, g.trial(map[string][]byte{}))
	if err == nil || !strings.Contains(err.Error(), "no-such-orted") || ctx.Err() != nil {
		t.Errorf("without orted at the far end: %v", err)
	}
	gone(t, g)
}
