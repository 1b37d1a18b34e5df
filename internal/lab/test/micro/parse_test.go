package micro

import (
	"os"
	"strings"
	"testing"

	"orrery/internal/lab/place"
	"orrery/internal/lab/test"

	"pgregory.net/rapid"
)

func made(t testing.TB, set func(*Options)) *micro {
	t.Helper()
	m, err := New(func(options any) error { set(options.(*Options)); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return m.(*micro)
}

// TestParse: the figure is the minimum of a time, and the maximum of a rate.
func TestParse(t *testing.T) {
	out, err := os.ReadFile("testdata/run.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	m := made(t, func(o *Options) { o.Only = []string{"pipe-bandwidth", "syscall"} })
	got, err := m.parts(&place.Place{})[0].samples(out)
	if err != nil {
		t.Fatal(err)
	}
	want := []test.Sample{{Figure: "simple syscall", Value: 9.11708218e-08},
		{Figure: "pipe bandwidth", Value: 7.86058884e+09}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, not %v", got, want)
	}
}

// TestParseBroken: errors in the output name the line or the measurement.
func TestParseBroken(t *testing.T) {
	const good = `{"name":"syscall","unit":"s","min":1e-7,"median":2e-7,"max":3e-7,"batches":5,"reps":100}`
	for what, one := range map[string]struct{ out, says string }{
		"nothing":       {"", "syscall is missing"},
		"another":       {strings.Replace(good, "syscall", "read", 1), "syscall is missing"},
		"cut off":       {good[:40], "line 1 is not JSON"},
		"text":          {good + "\nSegmentation fault", "line 2 is not JSON"},
		"no name":       {strings.Replace(good, `"syscall"`, `""`, 1), "the name is missing"},
		"unit":          {strings.Replace(good, `"s"`, `"us"`, 1), `"us"`},
		"other unit":    {strings.Replace(good, `"s"`, `"B/s"`, 1), "syscall has the unit B/s"},
		"negative":      {strings.Replace(good, "1e-7", "-1e-7", 1), "not minimum, median and maximum"},
		"zero":          {strings.Replace(good, "1e-7", "0", 1), "not minimum, median and maximum"},
		"disorder":      {strings.Replace(good, "2e-7", "9e-7", 1), "not minimum, median and maximum"},
		"no batches":    {strings.Replace(good, `"batches":5`, `"batches":0`, 1), "nothing was measured"},
		"not a number":  {strings.Replace(good, "1e-7", "nan", 1), "line 1 is not JSON"},
		"text for time": {strings.Replace(good, "1e-7", `"x"`, 1), "line 1 is not JSON"},
	} {
		m := made(t, func(o *Options) { o.Only = []string{"syscall"} })
		if _, err := m.parts(&place.Place{})[0].samples([]byte(one.out)); err == nil ||
			!strings.Contains(err.Error(), one.says) {
			t.Errorf("%s: %v; it should say %q", what, err, one.says)
		}
	}
}

// TestParseAnything: no output makes the parser panic, or is accepted as a measurement without a
// value.
func TestParseAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines, err := Parse([]byte(rapid.String().Draw(t, "out")))
		for _, l := range lines {
			if err != nil || l.best() <= 0 {
				t.Fatalf("%v %v", l, err)
			}
		}
	})
}
