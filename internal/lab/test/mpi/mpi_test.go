package mpi

import (
	"context"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/host"
	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
)

func made(t testing.TB, set func(*Options)) *mpi {
	t.Helper()
	m, err := New(func(options any) error { set(options.(*Options)); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return m.(*mpi)
}

func TestNewMistakes(t *testing.T) {
	for what, one := range map[string]struct {
		set  func(*Options)
		says string
	}{
		"program":     {func(o *Options) { o.Program = "osu" }, `write "orrery" or "imb"`},
		"nothing":     {func(o *Options) { o.Sizes, o.Collective = nil, nil }, "neither sizes nor collective"},
		"negative":    {func(o *Options) { o.Sizes = []int{-1} }, "-1 bytes"},
		"too large":   {func(o *Options) { o.Sizes = []int{1 << 30} }, "cannot be measured"},
		"twice":       {func(o *Options) { o.Sizes = []int{4, 4} }, "sizes: 4 is listed twice"},
		"no multiple": {func(o *Options) { o.Collective = []int{6} }, "is not a multiple"},
		"power":       {func(o *Options) { o.Program, o.Sizes = "imb", []int{12} }, "12 is not one"},
		"too short":   {func(o *Options) { o.Time = 0.1 }, "time = 0.1"},
		"odd":         {func(o *Options) { o.Ranks = 3 }, "an even number from 2 to 64"},
		"one rank":    {func(o *Options) { o.Ranks = 0 }, "ranks = 0"},
		"benchmark": {func(o *Options) { o.Benchmarks = []string{"scatter"} },
			`"scatter" is unknown (known: pingpong, sendrecv,`},
		"benchmark 2":   {func(o *Options) { o.Benchmarks = []string{bcast, bcast} }, "benchmarks: bcast is listed twice"},
		"no benchmark":  {func(o *Options) { o.Benchmarks = nil }, "nothing to measure"},
		"same end":      {func(o *Options) { o.Program, o.Ranks = "imb", 4 }, "would both be at this end"},
		"empty message": {func(o *Options) { o.Collective = []int{0} }, "0"},
	} {
		_, err := New(func(options any) error { one.set(options.(*Options)); return nil })
		if err == nil || !strings.Contains(err.Error(), one.says) {
			t.Errorf("%s: %v; it should say %q", what, err, one.says)
		}
	}
}

func TestFigures(t *testing.T) {
	m := made(t, func(*Options) {})
	seen := map[string]bool{}
	for _, f := range m.Figures() {
		if seen[f.Name] {
			t.Errorf("there are two figures %q", f.Name)
		}
		seen[f.Name] = true
	}
	for _, name := range []string{"pingpong latency 0 B", "pingpong latency 4 KiB", "pingpong bandwidth 16 KiB",
		"pingpong bandwidth 4 MiB", "alltoall 1 MiB"} {
		if !seen[name] {
			t.Errorf("there is no figure %q", name)
		}
	}
}

func TestIMBArguments(t *testing.T) {
	m := made(t, func(o *Options) { o.Program, o.Sizes, o.Collective = "imb", []int{0, 64, 1 << 20}, nil })
	got := strings.Join(m.tool.args(m.rows, 3.2), " ")
	if want := "PingPong -npmin 2 -msglog 6:20 -time 0.2"; got != want {
		t.Errorf("IMB-MPI1 %s, not %s", got, want)
	}
}

// TestRanks: half of the ranks start at each end, and a label reports if there are more ranks than
// processors.
func TestRanks(t *testing.T) {
	m := made(t, func(o *Options) { o.Ranks, o.Benchmarks, o.Sizes = 6, benchmarks, []int{0} })
	near := &place.Place{Name: "veth", Address: netip.MustParseAddr("10.1.1.1")}
	far := &place.Place{Name: "far", Address: netip.MustParseAddr("10.1.1.2")}
	words := strings.Join(m.orterun(&test.Trial{Near: near, Far: far, Of: 1}, workDirs{"/a", "/b"}, m.rows, 1), " ")
	for _, want := range []string{"-np 3 --host 10.1.1.1:3 ", " : -np 3 --host 10.1.1.2:3 ", "mpi_yield_when_idle 1",
		"sendrecv:64", "exchange:64", "reduce:64", "allgather:64"} {
		if !strings.Contains(words, want) {
			t.Errorf("%q is not in %s", want, words)
		}
	}
	near.Runner = host.Local{Name: "veth"}
	if labels := m.labelCrowded(t.Context(), &test.Trial{Near: near, Of: 1000}); len(labels) != 1 ||
		!strings.Contains(labels[0].Why, "6000 ranks share") {
		t.Errorf("%v", labels)
	}
	m.asked.Ranks = 1
	if labels := m.labelCrowded(t.Context(), &test.Trial{Near: near, Of: 1}); len(labels) != 0 {
		t.Errorf("%v", labels)
	}
	four := made(t, func(o *Options) { o.Program, o.Ranks, o.Benchmarks = "imb", 4, []string{sendrecv, allgather} })
	if got := strings.Join(four.tool.args(four.rows, 1), " "); !strings.HasPrefix(got, "Sendrecv Allgather -npmin 4 ") {
		t.Error(got)
	}
}

func TestNoEnds(t *testing.T) {
	near := &place.Place{Name: "veth", Address: netip.MustParseAddr("10.1.1.1")}
	m := made(t, func(*Options) {})
	for says, far := range map[string]*place.Place{
		"needs a far end":  nil,
		"over IPv4":        {Address: netip.MustParseAddr("fd00::1")},
		"address is inval": {},
	} {
		err := m.Check(context.Background(), &test.Trial{Near: near, Far: far})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v; it should say %q", err, says)
		}
	}
}

// TestCommon: the network contains both addresses and is larger than one address.
func TestCommon(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		four := rapid.Custom(func(t *rapid.T) netip.Addr {
			b := rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "bytes")
			return netip.AddrFrom4([4]byte(b))
		})
		a, b := four.Draw(t, "a"), four.Draw(t, "b")
		p := common(a, b)
		if !p.Contains(a) || !p.Contains(b) || p.Bits() > 31 {
			t.Fatalf("%s for %s and %s", p, a, b)
		}
	})
}

// TestStand: the shell passes any words unchanged to the substitute for orted, except for the
// interface.
func TestStand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[ -~]{0,8}`)
		by, words := word.Draw(t, "by"), rapid.SliceOfN(word, 1, 4).Draw(t, "words")
		script := ortedFunction(append([]string{"printf", `%s\n`}, words...), by) +
			` orrery_orted -mca oob_tcp_if_include "here" --mca x "tcp://10.1.1.1,2;3"`
		out, err := exec.Command("/bin/sh", "-c", script).CombinedOutput()
		want := append(slices.Clone(words), "-mca", "oob_tcp_if_include", by, "--mca", "x", "tcp://10.1.1.1,2;3")
		if err != nil || string(out) != strings.Join(want, "\n")+"\n" {
			t.Fatalf("%v\n%s", err, out)
		}
	})
}
