package micro

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"orrery/internal/host"
	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
)

func TestNewMistakes(t *testing.T) {
	for what, one := range map[string]struct {
		set  func(*Options)
		says string
	}{
		"misspelt":     {func(o *Options) { o.Only = []string{"syscal"} }, "did you mean syscall?"},
		"unknown":      {func(o *Options) { o.Only = []string{"rendering of images"} }, "known: syscall, read"},
		"far":          {func(o *Options) { o.Only = []string{"far-tcp-latency"} }, "far = true"},
		"too short":    {func(o *Options) { o.Time = 0.01 }, "time = 0.01"},
		"not a number": {func(o *Options) { o.Time = nan() }, "time = NaN"},
	} {
		_, err := New(func(options any) error { one.set(options.(*Options)); return nil })
		if err == nil || !strings.Contains(err.Error(), one.says) {
			t.Errorf("%s: %v; it should say %q", what, err, one.says)
		}
	}
}

var localhost = netip.AddrFrom4([4]byte{127, 0, 0, 1})

func nan() float64 { var zero float64; return zero / zero }

func TestFigures(t *testing.T) {
	near, far := made(t, func(*Options) {}), made(t, func(o *Options) { o.Far = true })
	if n, m := len(near.Figures()), len(far.Figures()); m != n+3 || near.Needs().Far || !far.Needs().Far {
		t.Errorf("%d figures without the far end, %d with it", n, m)
	}
	seen := map[string]bool{}
	for _, f := range far.Figures() {
		if seen[f.Name] || f.Name == "" {
			t.Errorf("there are two figures %q", f.Name)
		}
		seen[f.Name] = true
	}
}

// built returns the path of the program. It skips the test if there is no C compiler, which `make`
// needs.
func built(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc: make test-packages installs it")
	}
	program, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// compiled builds the program once for all tests.
var compiled = sync.OnceValues(func() (string, error) {
	source, _ := filepath.Glob("../../../../cmd/orrery-micro/*.c")
	program := filepath.Join(bin, place.Micro)
	args := append([]string{"-std=c11", "-O2", "-static", "-Wall", "-Wextra", "-Werror", "-o", program}, source...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return program, nil
})

var bin string // directory of the compiled program

func TestMain(m *testing.M) {
	var err error
	if bin, err = os.MkdirTemp("", "micro"); err != nil {
		panic(err)
	}
	status := m.Run()
	os.RemoveAll(bin)
	os.Exit(status)
}

func trial(t *testing.T, program string) *test.Trial {
	words := func(name string) []string {
		if name == place.Micro {
			return []string{program}
		}
		return []string{"/bin/" + name}
	}
	near := &place.Place{Runner: host.Local{Name: "here"}, Name: "bare", Dir: t.TempDir(), Programs: words}
	far := *near
	far.Address = localhost
	return &test.Trial{Near: near, Far: &far, Of: 1, Barrier: func(context.Context) error { return nil },
		Keep: func(string, []byte) error { return nil }}
}

// TestRun: every measurement runs for a moment, in both parts, and leaves no file in the work
// directory.
func TestRun(t *testing.T) {
	program := built(t)
	m := made(t, func(o *Options) { o.Far, o.Time = true, 0.7 })
	tr := trial(t, program)
	if err := m.Check(context.Background(), tr); err != nil {
		t.Fatal(err)
	}
	result, err := m.Run(context.Background(), tr)
	if err != nil {
		t.Fatal(err)
	}
	value := map[string]float64{}
	for _, s := range result.Samples {
		value[s.Figure] = s.Value
	}
	for _, f := range m.Figures() {
		if !(value[f.Name] > 0) {
			t.Errorf("%s is %g", f.Name, value[f.Name])
		}
	}
	if len(result.Samples) != len(m.Figures()) {
		t.Errorf("%d samples of %d figures", len(result.Samples), len(m.Figures()))
	}
	// This order holds for every processor and kernel. If it does not, the compiler removed some
	// code.
	for _, less := range [][2]string{
		{"simple syscall", "simple stat"}, {"simple stat", "process fork+exit"}, {"process fork+exit", "process fork+sh"},
		{"double mul", "double div"}, {"integer mul", "simple syscall"}, {"simple syscall", "select on 500 tcp fds"},
		{"simple syscall", "signal handler overhead"},
	} {
		if value[less[0]] >= value[less[1]] {
			t.Errorf("%s takes %g s and %s %g s", less[0], value[less[0]], less[1], value[less[1]])
		}
	}
	if v := value["double mul"]; v < 1e-10 || v > 1e-7 {
		t.Errorf("double mul takes %g s", v)
	}
	if left, _ := os.ReadDir(tr.Near.Dir); len(left) != 0 {
		t.Errorf("left in the work directory: %v", left)
	}
	out, err := exec.Command(program, "list").Output()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(out)) {
		names = append(names, strings.Fields(line)[0])
	}
	for _, r := range rows() {
		if !slices.Contains(names, r.name) {
			t.Errorf("orrery-micro has no %s", r.name)
		}
	}
	if len(names) != len(rows()) {
		t.Errorf("orrery-micro has %d measurements, here are %d", len(names), len(rows()))
	}
}

// TestFails: the error names what is wrong, and the exit status is not 0.
func TestFails(t *testing.T) {
	program := built(t)
	for says, args := range map[string][]string{
		"no measurement foo":           {"run", "--only", "foo"},
		"needs --peer":                 {"run", "--only", "far-tcp-connect"},
		"not a number of seconds":      {"run", "--time", "soon"},
		"not an IP address":            {"run", "--peer", "localhost:1"},
		"/nowhere: No such file":       {"run", "--dir", "/nowhere"},
		"no such option":               {"run", "--fast"},
		"connect: Connection refused":  {"run", "--only", "far-tcp-latency", "--peer", "127.0.0.1:1"},
		"recv: Connection refused":     {"run", "--only", "far-udp-latency", "--peer", "127.0.0.1:1"},
		"/no/shell: No such file":      {"run", "--only", "fork-sh", "--shell", "/no/shell"},
		"the child ended with status":  {"run", "--only", "fork-sh", "--shell", "/bin/false"},
		"serve needs --listen":         {"serve"},
		"Cannot assign requested addr": {"serve", "--listen", "192.0.2.1:7"},
	} {
		out, err := exec.Command(program, args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), says) {
			t.Errorf("%v: %v, %q; it should say %q", args, err, out, says)
		}
	}
}

// TestPeerTaken: a port in use is reported before the first round.
func TestPeerTaken(t *testing.T) {
	tr := trial(t, built(t))
	m := made(t, func(o *Options) { o.Far = true })
	_, done, err := m.peer(context.Background(), tr)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if err := m.Check(context.Background(), tr); err == nil || !strings.Contains(err.Error(), "tcp port 5611 is in use") {
		t.Errorf("a port that is taken: %v", err)
	}
}

// TestLoopback: loopback rows are measured in a separate network namespace, and again with the
// host's packet filter rules.
func TestLoopback(t *testing.T) {
	tr := trial(t, built(t))
	counts := func(name string) host.Runner { return counted{host.Local{Name: name}, &[]string{}} }
	tr.Near.Runner, tr.Near.Alone = counts("host"), counts("alone")
	m := made(t, func(o *Options) { o.Only, o.Time = []string{"syscall", "udp-latency"}, 0.1 })
	r, err := m.Run(t.Context(), tr)
	if err != nil {
		t.Fatal(err)
	}
	var figures []string
	for _, s := range r.Samples {
		figures = append(figures, s.Figure)
	}
	if got := strings.Join(figures,
		"; "); got != "simple syscall; host's rules, rpc/udp latency localhost; rpc/udp latency localhost" {
		t.Errorf("figures %s", got)
	}
	for _, where := range []struct {
		runner host.Runner
		only   string
	}{{tr.Near.Runner, "syscall,udp-latency"}, {tr.Near.Alone, "udp-latency"}} {
		if ran := *where.runner.(counted).only; len(ran) != 1 || ran[0] != where.only {
			t.Errorf("ran %q, not %q", ran, where.only)
		}
	}
}

// counted records the measurements that a place was asked for.
type counted struct {
	host.Local
	only *[]string
}

func (c counted) Run(ctx context.Context, cmd host.Command) error {
	if i := slices.Index(cmd.Args, "--only"); i >= 0 {
		*c.only = append(*c.only, cmd.Args[i+1])
	}
	return c.Local.Run(ctx, cmd)
}
