package cpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"
	"pgregory.net/rapid"

	"orrery/internal/host"
	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
	"orrery/test/need"
)

func from(text string) func(any) error {
	return func(options any) error {
		return toml.NewDecoder(strings.NewReader(text)).DisallowUnknownFields().Decode(options)
	}
}

func TestNew(t *testing.T) {
	c, err := New(from(`methods = ["int64", "fft"]`))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range c.Figures() {
		names = append(names, f.Name+" "+f.Unit+" "+string(f.Aggregate))
	}
	if want := []string{"geometric mean of stress-ng 1/s sum", "wall clock s mean", "int64 1/s sum",
		"fft 1/s sum"}; !slices.Equal(names, want) {
		t.Errorf("figures %q, want %q", names, want)
	}
	if got := c.Time(); got != 600*time.Millisecond {
		t.Errorf("time %s", got)
	}
	for text, want := range map[string]string{
		"methods = []":             `methods is empty (write methods = ["int64", "matrixprod"])`,
		`methods = ["all"]`:        `methods: "all" is not a single method`,
		`methods = ["fft", "fft"]`: "methods: fft is listed twice",
		"work = 0":                 "there is nothing to measure (set seconds, work or both)",
		"work = -1":                "work = -1",
		"seconds = -1":             "seconds = -1",
		`clock = "sun"`:            `clock = "sun" (write "real" or "cpu")`,
	} {
		if _, err := New(from(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// read returns a file of testdata, as written by stress-ng 0.15.06 of Debian 12. The invalid files
// were cut off, or written without --metrics.
func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestParse(t *testing.T) {
	l, err := parse(read(t, "work.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if want := (loop{"0.15.06", 500, 772.917917, 1744.323970, 0.646899, 0.282922, 0.003722}); *l != want {
		t.Errorf("got %+v, want %+v", *l, want)
	}
	if _, err := parse(read(t, "matrixprod.yaml")); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{
		"invalid-truncated.yaml":  "the output of stress-ng is not a complete YAML document (600 bytes)",
		"invalid-no-metrics.yaml": "the output of stress-ng 0.15.06 has no metrics of the cpu stressor",
		"methods.txt":             "the output of stress-ng is not a complete YAML document",
	} {
		if _, err := parse(read(t, name)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, want)
		}
	}
	none := strings.Replace(string(read(t, "work.yaml")), "bogo-ops: 500", "bogo-ops: 0", 1)
	if _, err := parse([]byte(none)); err == nil || !strings.Contains(err.Error(), "no operation") {
		t.Errorf("of no operation: %v", err)
	}
}

// TestDefaults: the pinned version has all default methods.
func TestDefaults(t *testing.T) {
	list := methods(string(read(t, "methods.txt")))
	if len(list) < 50 {
		t.Fatalf("%d methods", len(list))
	}
	for _, m := range defaults().Methods {
		if !slices.Contains(list, m) {
			t.Errorf("stress-ng has no method %s", m)
		}
	}
}

// TestMean: a machine that is k times as fast in every method has k times the score, and the score
// lies between the lowest and the highest rate.
func TestMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rates := rapid.SliceOfN(rapid.Float64Range(1e-3, 1e9), 1, 20).Draw(t, "rates")
		k := rapid.Float64Range(1e-3, 1e3).Draw(t, "k")
		faster := make([]float64, len(rates))
		for i, r := range rates {
			faster[i] = k * r
		}
		a, b := geometricMean(rates), geometricMean(faster)
		if math.Abs(b/a/k-1) > 1e-9 || a < slices.Min(rates)*(1-1e-9) || a > slices.Max(rates)*(1+1e-9) {
			t.Fatalf("mean %v, of faster ones %v", a, b)
		}
	})
}

// answers is a place whose stress-ng prints a given version.
type answers struct {
	host.Local
	version string
}

func (a answers) Run(_ context.Context, c host.Command) error {
	if c.Args[1] == "--version" {
		fmt.Fprintf(c.Stdout, "stress-ng, version %s (gcc 12.2.0, x86_64 Linux)\n", a.version)
		return nil
	}
	return &host.RunError{Status: 1, Output: "cpu-method must be one of: all int64 float fft\n",
		Err: errors.New("exit status 1")}
}

func TestCheck(t *testing.T) {
	c, err := New(from(`methods = ["int64", "flot", "ftt"]`))
	if err != nil {
		t.Fatal(err)
	}
	in := func(name, version string) *test.Trial {
		return &test.Trial{Near: &place.Place{Name: name, Runner: answers{version: version}}}
	}
	err = c.Check(t.Context(), in("bare", "0.15.06"))
	if err == nil || err.Error() != "bare: methods: stress-ng 0.15.06 has no \"flot\" (did you mean \"float\"?)\nbare: methods: stress-ng 0.15.06 has no \"ftt\" (did you mean \"fft\"?)" {
		t.Errorf("of methods that are not there: %v", err)
	}
	err = c.Check(t.Context(), in("veth", "0.17.00"))
	if err == nil || !strings.HasPrefix(err.Error(),
		"veth: stress-ng has version 0.17.00 here and 0.15.06 in bare") {
		t.Errorf("of another version: %v", err)
	}
	err = c.Check(t.Context(), &test.Trial{Near: &place.Place{Name: "bare", Runner: host.Local{},
		Programs: func(string) []string { return []string{"/nowhere/stress-ng"} }}})
	if err == nil || !strings.HasPrefix(err.Error(), "bare: stress-ng cannot be run") ||
		!strings.HasSuffix(err.Error(), "(the layer needs the package stress-ng)") {
		t.Errorf("without it: %v", err)
	}
}

// TestLive: all figures are measured, with timed runs and with fixed work.
func TestLive(t *testing.T) {
	need.Integration(t)
	c, err := New(from("methods = [\"int64\", \"queens\"]\nseconds = 1\nwork = 100"))
	if err != nil {
		t.Fatal(err)
	}
	tr := &test.Trial{
		Near: &place.Place{Name: "bare", Runner: host.Local{Name: "bare"}, Dir: t.TempDir()}, Of: 1,
		Barrier: func(context.Context) error { return nil }, Keep: func(string, []byte) error { return nil },
	}
	if err := c.Check(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	r, err := c.Run(t.Context(), tr)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range c.Figures() {
		if s := r.Samples[i]; s.Figure != f.Name || s.Value <= 0 {
			t.Errorf("%+v instead of %s", s, f.Name)
		}
	}
	t.Log(r.Samples)
}
