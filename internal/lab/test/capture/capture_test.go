package capture

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/lab/test"
	"orrery/internal/problem"
)

// made creates the test with changed options.
func made(t *testing.T, change func(o *options)) *capture {
	t.Helper()
	c, err := New(func(o any) error { change(o.(*options)); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return c.(*capture)
}

func TestOptions(t *testing.T) {
	for want, change := range map[string]func(o *options){
		"program":   func(o *options) { o.Program = "dada" },
		"packet":    func(o *options) { o.Packet = 100 },
		"heap":      func(o *options) { o.Heap = 1 << 30 },
		"sockets":   func(o *options) { o.Sockets = 0 },
		"trial":     func(o *options) { o.Trial = time.Millisecond },
		"lossy":     func(o *options) { o.Lossy = 9 },
		"precision": func(o *options) { o.Precision = 0 },
	} {
		_, err := New(func(o any) error { change(o.(*options)); return nil })
		if problem.ExitCode(err) != int(problem.Mistake) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	c := made(t, func(*options) {})
	if n := c.Needs(); !n.Far || len(n.Tools) != 1 || len(c.Figures()) != 4 {
		t.Errorf("%+v, %v", n, c.Figures())
	}
}

func TestUnits(t *testing.T) {
	for text, want := range map[string]float64{"256KiB": 256 << 10, "16 MiB": 16 << 20, "1472": 1472, "0": -1, "x": -1,
		"1.5": -1, "-1KiB": -1} {
		var b test.Bytes
		if err := b.UnmarshalText([]byte(text)); (err != nil) != (want < 0) || err == nil && float64(b) != want {
			t.Errorf("%s: %d, %v", text, b, err)
		}
	}
	for text, want := range map[string]float64{"10Gbit/s": 1e10, "1.5 Mbit/s": 1.5e6, "0": 0, "-1": -1, "fast": -1,
		"NaN": -1} {
		var r test.Rate
		if err := r.UnmarshalText([]byte(text)); (err != nil) != (want < 0) || err == nil && float64(r) != want {
			t.Errorf("%s: %g, %v", text, r, err)
		}
	}
}

// TestCapture searches over a real link, and again from the rate that it found.
func TestCapture(t *testing.T) {
	tr := trial(t)
	c := made(t, func(o *options) { o.Trial, o.Most, o.Buffer = 50*time.Millisecond, 2e9, 4<<20 })
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := c.Check(ctx, tr); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		began := time.Now()
		result, err := c.Run(ctx, tr)
		if err != nil {
			t.Fatal(err)
		}
		figures(t, c, result)
		t.Logf("%v %v in %v", result.Samples, result.Labels, time.Since(began))
	}
	if left := exec.Command("ip", "netns", "pids", tr.Near.Node); left != nil {
		if out, _ := left.Output(); len(out) > 0 {
			t.Errorf("left running: %s", out)
		}
	}
}

// TestSameBuffer: a place that can exceed net.core.rmem_max gets no larger buffer than the others.
func TestSameBuffer(t *testing.T) {
	tr := trial(t)
	free := tr.Near.Runner
	bound := *tr
	bounded := *tr.Near
	bounded.Runner, bounded.Name = unforced{free}, "bound"
	bound.Near = &bounded
	c := made(t, func(o *options) { o.Buffer = 1 << 30 })
	got := map[string]int{}
	for _, check := range []*test.Trial{tr, &bound} {
		if err := c.Check(t.Context(), check); err != nil {
			t.Fatal(err)
		}
		p, err := c.open(t.Context(), check)
		if err != nil {
			t.Fatal(err)
		}
		got[check.Near.Name] = p.buffer()
		p.close()
	}
	p, err := c.open(t.Context(), tr)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if got["bound"] >= got[tr.Near.Name] {
		t.Fatalf("without the right to force it the buffer is as large: %v", got)
	}
	if p.buffer() != got["bound"] {
		t.Errorf("after both were checked one has %d bytes: %v", p.buffer(), got)
	}
}

// unforced removes the right to exceed net.core.rmem_max from commands.
type unforced struct{ host.Runner }

func (u unforced) Run(ctx context.Context, c host.Command) error {
	c.Args = append([]string{"setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin"}, c.Args...)
	return u.Runner.Run(ctx, c)
}

func figures(t *testing.T, c *capture, r test.Result) {
	t.Helper()
	if len(r.Samples) != len(c.Figures()) {
		t.Fatalf("%v", r.Samples)
	}
	for i, f := range c.Figures() {
		// The figure may be 0 if the host was busier before the trials than during them.
		if s := r.Samples[i]; s.Figure != f.Name || !(s.Value > 0 || s.Value == 0 && f.Better == test.Less) {
			t.Errorf("%v, want a value of %s", s, f.Name)
		}
	}
	if _, err := json.Marshal(r.Detail); err != nil {
		t.Error(err)
	}
}

// TestWherePacketsDie: at full speed with a small buffer, the socket drops packets, and all lost
// packets are accounted for.
func TestWherePacketsDie(t *testing.T) {
	tr := trial(t)
	c := made(t, func(o *options) { o.Buffer, o.GSO = 64<<10, false })
	ctx := context.Background()
	p, err := c.open(ctx, tr)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	r := &run{capture: c, trial: tr, pair: p}
	if err := r.begin(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := r.runTrial(ctx, "search", 20e9, 200*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	d := r.points[0].Drops
	if d == nil {
		t.Skip("nothing was lost: the receiver is too fast for this sender")
	}
	var sum uint64
	for _, n := range d.Where {
		sum += n
	}
	if sum != d.Lost || d.Where[atSocket] == 0 || d.Where[atUnknown] > 0 {
		t.Errorf("%+v", d)
	}
	t.Logf("%+v", *d)
}

// TestNobodyHears: a firewall that drops the packets is detected before the first round.
func TestNobodyHears(t *testing.T) {
	tr := trial(t)
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("no nft")
	}
	sh(t, `ip netns exec $1 nft 'add table inet x; add chain inet x y { type filter hook input priority 0; }; add rule inet x y udp dport 7148 drop'`,
		tr.Near.Node)
	c := made(t, func(*options) {})
	err := c.Check(context.Background(), tr)
	if err == nil || !strings.Contains(err.Error(), "firewall") {
		t.Error(err)
	}
}

// TestPortTaken: a port in use is detected before the first round.
func TestPortTaken(t *testing.T) {
	tr := trial(t)
	c := made(t, func(*options) {})
	p, err := c.open(context.Background(), tr)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if err := c.Check(context.Background(), tr); err == nil || !strings.Contains(err.Error(), "7148") {
		t.Error(err)
	}
}

// TestKilled: if a program is killed or the user cancels the run, there is an error and nothing
// hangs.
func TestKilled(t *testing.T) {
	tr := trial(t)
	c := made(t, func(o *options) { o.Trial = time.Second })
	p, err := c.open(context.Background(), tr)
	if err != nil {
		t.Fatal(err)
	}
	pids, _ := exec.Command("ip", "netns", "pids", tr.Near.Node).Output()
	sh(t, `kill -9 $1`, strings.Fields(string(pids))[0])
	began := time.Now()
	if _, _, err := p.trial(context.Background(), 1e8, time.Second); err == nil {
		t.Error("nobody noticed that the receiver was killed")
	}
	p.close()
	ctx, cancel := context.WithTimeoutCause(context.Background(), 700*time.Millisecond, errors.New("enough"))
	defer cancel()
	if _, err := c.Run(ctx, tr); err == nil {
		t.Error("nobody noticed that the run was ended")
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}

// theirs lets the trial find spead2's programs, or skips the test.
func theirs(t *testing.T, tr *test.Trial) {
	t.Helper()
	dir := os.Getenv("ORRERY_SPEAD2")
	if dir == "" {
		dir = "/var/cache/orrery-test/spead2/build/src"
	}
	for _, program := range []string{"spead2_send", "spead2_recv"} {
		if _, err := os.Stat(dir + "/" + program); err != nil {
			t.Skipf("no %s: bench/lab/spead/install builds it", program)
		}
	}
	mine := tr.Near.Programs
	words := func(name string) []string {
		if strings.HasPrefix(name, "spead2_") {
			return []string{dir + "/" + name}
		}
		return mine(name)
	}
	tr.Near.Programs, tr.Far.Programs = words, words
}

// TestTheirs searches with spead2's own programs, at a rate that they reach while other tests run.
func TestTheirs(t *testing.T) {
	tr := trial(t)
	theirs(t, tr)
	c := made(t, func(o *options) {
		o.Program, o.Trial, o.Most, o.Buffer, o.Trials, o.Lossy, o.Paper = spead2, 200*time.Millisecond, 5e7, 4<<20, 3, 1,
			false
	})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := c.Check(ctx, tr); err != nil {
		t.Fatal(err)
	}
	c.last.Store(tr.Near.Name+" 0 of 1", 4.9e7)
	result, err := c.Run(ctx, tr)
	if err != nil {
		t.Fatal(err)
	}
	figures(t, c, result)
	t.Logf("%v %v", result.Samples, result.Labels)
}
