package mpi

import (
	"context"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

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
		"program":       {func(o *Options) { o.Program = "osu" }, `say "orrery" or "imb"`},
		"nothing":       {func(o *Options) { o.Sizes, o.Collective = nil, nil }, "neither sizes nor collective"},
		"negative":      {func(o *Options) { o.Sizes = []int{-1} }, "-1 bytes"},
		"too large":     {func(o *Options) { o.Sizes = []int{1 << 30} }, "cannot be measured"},
		"twice":         {func(o *Options) { o.Sizes = []int{4, 4} }, "sizes: 4 is there twice"},
		"no multiple":   {func(o *Options) { o.Collective = []int{6} }, "is not a multiple"},
		"power":         {func(o *Options) { o.Program, o.Sizes = "imb", []int{12} }, "12 is none"},
		"too short":     {func(o *Options) { o.Time = 0.1 }, "time = 0.1"},
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
	for _, name := range []string{"pingpong latency 0 B", "pingpong latency 4 KiB", "pingpong bandwidth 16 KiB", "pingpong bandwidth 4 MiB", "alltoall 1 MiB"} {
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

func TestNoEnds(t *testing.T) {
	near := &place.Place{Name: "veth", Address: netip.MustParseAddr("10.1.1.1")}
	m := made(t, func(*Options) {})
	for says, far := range map[string]*place.Place{
		"no far end":       nil,
		"over IPv4":        {Address: netip.MustParseAddr("fd00::1")},
		"address is inval": {},
	} {
		err := m.Check(context.Background(), &test.Trial{Near: near, Far: far})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v; it should say %q", err, says)
		}
	}
}

// TestCommon: the network has both addresses, and more than one.
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

// TestStand: whatever the words, the shell gives them to what stands for orted, with the other interface and nothing else changed.
func TestStand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[ -~]{0,8}`)
		by, words := word.Draw(t, "by"), rapid.SliceOfN(word, 1, 4).Draw(t, "words")
		script := stand(append([]string{"printf", `%s\n`}, words...), by) + ` orrery_orted -mca oob_tcp_if_include "here" --mca x "tcp://10.1.1.1,2;3"`
		out, err := exec.Command("/bin/sh", "-c", script).CombinedOutput()
		want := append(slices.Clone(words), "-mca", "oob_tcp_if_include", by, "--mca", "x", "tcp://10.1.1.1,2;3")
		if err != nil || string(out) != strings.Join(want, "\n")+"\n" {
			t.Fatalf("%v\n%s", err, out)
		}
	})
}
