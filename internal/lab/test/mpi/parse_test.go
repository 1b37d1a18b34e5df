package mpi

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/lab/place"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestParse: latency is the time, bandwidth is the size divided by the time.
func TestParse(t *testing.T) {
	m := made(t, func(o *Options) { o.Sizes, o.Collective = []int{0, 4 << 20}, []int{64} })
	got, err := m.tool.parse(read(t, "orrery.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if got.sent != 341951680 || got.received != 341951616 {
		t.Errorf("payload %d and %d", got.sent, got.received)
	}
	m.rows = slices.DeleteFunc(m.rows, func(r row) bool { return r.benchmark == allreduce || r.benchmark == alltoall })
	samples, err := m.samples(got)
	if err != nil || len(samples) != 3 {
		t.Fatal(samples, err)
	}
	want := map[string]float64{"pingpong latency 0 B": 4.01168669e-06,
		"pingpong bandwidth 4 MiB": 4194304 / 0.0010591375, "bcast 64 B": 5.08092282e-06}
	for _, s := range samples {
		if s.Value != want[s.Figure] {
			t.Errorf("%s is %g, not %g", s.Figure, s.Value, want[s.Figure])
		}
	}
	m.rows = append(m.rows, row{alltoall, 64})
	if _, err := m.samples(got); err == nil || !strings.Contains(err.Error(), "no result for alltoall with 64 bytes") {
		t.Errorf("a figure that is not there: %v", err)
	}
}

func TestParseBroken(t *testing.T) {
	const good = `{"benchmark":"bcast","bytes":64,"min":1e-6,"median":2e-6,"max":3e-6,"batches":5,"reps":9}`
	for what, one := range map[string]struct{ out, says string }{
		"empty":    {"", "ends early, after 0 measurements"},
		"cut off":  {good, "ends early, after 1 measurements"},
		"text":     {"[vm:1] PMIX ERROR\n" + good, "line 1 is not JSON"},
		"zero":     {strings.Replace(good, "1e-6", "0", 1), "not minimum, median and maximum"},
		"disorder": {strings.Replace(good, "2e-6", "4e-6", 1), "not minimum, median and maximum"},
	} {
		if _, err := (orrery{}).parse([]byte(one.out)); err == nil || !strings.Contains(err.Error(), one.says) {
			t.Errorf("%s: %v; it should say %q", what, err, one.says)
		}
	}
}

// TestParseIMB: the four tables of IMB-MPI1, in the format of its user guide's sample outputs.
func TestParseIMB(t *testing.T) {
	m := made(t, func(o *Options) {
		o.Program, o.Sizes, o.Collective = "imb", []int{0, 64, 1 << 14, 1 << 20}, []int{64, 1 << 20}
	})
	got, err := m.tool.parse(read(t, "imb.txt"))
	if err != nil {
		t.Fatal(err)
	}
	samples, err := m.samples(got)
	if err != nil {
		t.Fatal(err)
	}
	value := map[string]float64{}
	for _, s := range samples {
		value[s.Figure] = s.Value
	}
	for figure, want := range map[string]float64{"pingpong latency 0 B": 12.11e-6, "pingpong bandwidth 1 MiB": 1307.28e6,
		"bcast 64 B": 12.1e-6, "allreduce 1 MiB": 1150e-6, "alltoall 64 B": 14.1e-6} {
		if math.Abs(value[figure]/want-1) > 1e-4 {
			t.Errorf("%s is %g, not %g", figure, value[figure], want)
		}
	}
	one := uint64(64*1000 + 16384*1000 + 1048576*40)
	if want := 3*one + one/2; got.sent != want {
		t.Errorf("payload %d, not %d", got.sent, want)
	}
}

// TestParseIMBRanks: with four ranks, the least network payload is what each benchmark must move
// from two ranks to the other two.
func TestParseIMBRanks(t *testing.T) {
	const head = "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]"
	out := ""
	for _, name := range []string{"Sendrecv", "Exchange", "Bcast", "Reduce", "Allreduce", "Allgather", "Alltoall"} {
		columns, line := head, "64 10 1.0 2.0 1.5"
		if name == "Sendrecv" || name == "Exchange" { // these also print a bandwidth
			columns, line = head+" Mbytes/sec", line+" 64.0"
		}
		out += "# Benchmarking " + name + "\n# #processes = 4\n" + columns + "\n" + line + "\n\n"
	}
	m := made(t, func(o *Options) { o.Program, o.Ranks, o.Benchmarks, o.Collective = "imb", 4, benchmarks[1:], []int{64} })
	got, err := m.tool.parse([]byte(out))
	if err != nil {
		t.Fatal(err)
	}
	if samples, err := m.samples(got); err != nil || len(samples) != 7 {
		t.Errorf("%v %v", samples, err)
	}
	if want := uint64(64 * (10 + 20 + 4 + 4 + 10 + 20 + 40)); got.sent != want || got.received != want {
		t.Errorf("payload %d and %d, not %d", got.sent, got.received, want)
	}
}

func TestParseIMBBroken(t *testing.T) {
	good := string(read(t, "imb.txt"))
	for what, one := range map[string]struct{ out, says string }{
		"empty": {"", "no table"},
		"no columns": {strings.Replace(good, "       #bytes #repetitions      t[usec]   Mbytes/sec\n", "", 1),
			"without column names"},
		"other columns": {strings.Replace(good, "t[usec]", "t[msec]", 1), "t[usec] or t_max[usec] is missing"},
		"cut off":       {good[:strings.Index(good, "12.50")], "2 values for 4 columns"},
		"text":          {strings.Replace(good, "12.11", "*****", 1), "t[usec] is not a number"},
	} {
		if _, err := (imb{}).parse([]byte(one.out)); err == nil || !strings.Contains(err.Error(), one.says) {
			t.Errorf("%s: %v; it should say %q", what, err, one.says)
		}
	}
}

// TestParseAnything: no output makes a parser panic.
func TestParseAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SampledFrom([]string{"# Benchmarking PingPong\n", "#bytes ", "#repetitions ", "t[usec]\n", "1 ",
			"-2.5 ", "\n", "{", "\"sent\":1}", "x"})
		out := []byte(strings.Join(rapid.SliceOf(words).Draw(t, "out"), ""))
		_, _ = imb{}.parse(out)
		_, _ = orrery{}.parse(out)
		_ = place.ParseTraffic(string(out))
	})
}

func TestCounters(t *testing.T) {
	const text = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:    1000      10    0    0    0     0          0         0     1000      10    0    0    0     0       0          0
  eth0:123456789   1000    0    0    0     0          0         0 98765432     999    0    0    0     0       0          0
`
	all := tally(place.ParseTraffic(text))
	if all["eth0"] != (place.Traffic{Received: 123456789, Sent: 98765432}) || len(all) != 2 {
		t.Errorf("%v", all)
	}
	seen := all.since(tally{"eth0": {Received: 123450000, Sent: 98760000}})
	if got := (measured{sent: 5432, received: 6789}); len(checkTraffic("eth0", seen, got)) != 0 {
		t.Errorf("traffic that was seen is not believed: %v", seen)
	}
	for _, got := range []measured{{sent: 5433, received: 6789}, {sent: 5432, received: 6790}} {
		if labels := checkTraffic("eth0", seen, got); len(labels) != 1 || labels[0].Name != "path" {
			t.Errorf("traffic that was not seen is believed: %v", labels)
		}
	}
	if labels := checkTraffic("eth7", seen, measured{}); len(labels) != 1 {
		t.Error("an interface that is not there is believed")
	}
}
