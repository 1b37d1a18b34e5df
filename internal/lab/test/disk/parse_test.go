package disk

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/lab/test"
)

// read returns a file of testdata: output of Debian 12's fio 3.33, iozone 3.489 and bonnie++ 2.00a,
// and of Debian 11's bonnie++ 2.00. The invalid files were cut off, or come from runs without write
// permission or on a full file system.
func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestParseFio(t *testing.T) {
	r, err := parseFio(read(t, "fio-mixed.json"))
	if err != nil {
		t.Fatal(err)
	}
	if r.Version != "fio-3.33" || r.Read.IOPS <= r.Write.IOPS || r.Write.IOPS <= 0 || r.Read.Tail <= r.Read.Median ||
		r.Read.Median <= 1e-6 || r.Read.Tail > 1 {
		t.Errorf("%+v", *r)
	}
	if !slices.Equal(r.Disks, []string{"vda"}) || math.Abs(r.Read.Runtime-0.5) > 0.01 {
		t.Errorf("%+v", *r)
	}
	if math.Abs(r.Read.IOPS*4096/r.Read.Rate-1) > 0.01 {
		t.Errorf("%v blocks of 4 KiB in a second are not %v bytes", r.Read.IOPS, r.Read.Rate)
	}
	if r, err = parseFio(read(t, "fio-note.json")); err != nil || r.Write.Rate <= 0 || r.Read != (directionResult{}) {
		t.Errorf("with a note before it: %+v, %v", r, err)
	}
}

// TestParseLog: values of two threads in the same second are added, separately for reads and
// writes.
func TestParseLog(t *testing.T) {
	read, written := parseLog("1004, 10, 0, 0, 0\n1004, 7, 1, 0, 0\n2005, 20, 0, 0, 0\n\nnonsense, 1\n1003, 1, 0, 0, 0\n2001, 2, 0, 0, 0\n1e300, 2, 0, 0, 0\n3000, NaN, 0\n",
		1024)
	if !slices.Equal(read, []float64{11 << 10, 22 << 10}) || !slices.Equal(written, []float64{7 << 10}) {
		t.Errorf("%v and %v", read, written)
	}
}

func TestParseIozone(t *testing.T) {
	rates, version, err := parseIozone(string(read(t, "iozone.txt")))
	if err != nil {
		t.Fatal(err)
	}
	if want := []float64{765720 << 10, 128972 << 10, 428105 << 10, 541064 << 10, 436311 << 10,
		510641 << 10}; !slices.Equal(rates, want) || version != "3.489" {
		t.Errorf("%v of %s, want %v", rates, version, want)
	}
}

func TestParseBonnie(t *testing.T) {
	all := (&bonnie{workspace: &workspace{options: options{Files: 8}}}).columns(false)
	m, err := parseBonnie(string(read(t, "bonnie.csv")), all)
	if err != nil {
		t.Fatal(err)
	}
	if m.rates["block write"] != 102237*1024 || m.rates["block rewrite"] != 243754*1024 || len(m.rates) != 2 ||
		len(m.fast) != 8 || m.version != "2.00a" {
		t.Errorf("%+v", *m)
	}
	if l := m.labels(); len(l) != 8 || l[0].Where != "block read" || l[0].Name != "too-fast" {
		t.Errorf("labels %v", l)
	}
	if m, err = parseBonnie(string(read(t, "bonnie-2.00.csv")), all); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"block write": 44441 << 10, "block rewrite": 203787 << 10, "seeks": 6355, "create sequential": 1062,
		"delete sequential": 11561, "create random": 541, "delete random": 12899,
	}
	if !maps.Equal(m.rates, want) || m.version != "2.00" ||
		!slices.Equal(m.fast, []string{"block read", "stat sequential", "stat random"}) {
		t.Errorf("%+v", *m)
	}
	m, err = parseBonnie(string(read(t, "bonnie-characters.csv")), (&bonnie{workspace: &workspace{}}).columns(true))
	if err != nil || m.rates["character write"] != 255<<10 || m.rates["character read"] != 357<<10 ||
		len(m.rates) != 2 || len(m.fast) != 4 {
		t.Errorf("%+v, %v", m, err)
	}
	full := strings.ReplaceAll(string(read(t, "bonnie.csv")), "+++++", "123.5")
	if m, err = parseBonnie(full, all); err != nil || len(m.rates) != len(all) || m.rates["seeks"] != 123.5 ||
		m.rates["delete random"] != 123.5 {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestParseInvalid(t *testing.T) {
	fio := func(text []byte) error { _, err := parseFio(text); return err }
	iozone := func(text []byte) error { _, _, err := parseIozone(string(text)); return err }
	bonnie := func(text []byte) error { _, err := parseBonnie(string(text), blockColumns); return err }
	for _, c := range []struct {
		parse func([]byte) error
		name  string
		want  string
	}{
		{fio, "invalid-fio-error.json", "fio failed: invalid argument"},
		{fio, "invalid-fio-full.json", "fio failed: no space left on device"},
		{fio, "invalid-fio-truncated.json", "the output of fio is not complete JSON (3000 bytes): unexpected end of JSON input"},
		{fio, "iozone.txt", "the output of fio is not complete JSON"},
		{iozone, "invalid-iozone-truncated.txt", "the output of iozone ends in the middle of its table"},
		{iozone, "invalid-iozone-open.txt", "the output of iozone ends in the middle of its table"},
		{iozone, "bonnie.csv", "the output of iozone does not say that it is in kBytes/sec"},
		{bonnie, "invalid-bonnie-truncated.csv", "the output of bonnie++ has 14 columns instead of 50"},
		{bonnie, "bonnie-too-fast.csv", "bonnie++ did everything too fast to report a rate"},
		{bonnie, "iozone.txt", "the output of bonnie++ is not one line of CSV in format 1.98"},
	} {
		if err := c.parse(read(t, c.name)); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", c.name, err, c.want)
		}
	}
	if err := fio(nil); err == nil {
		t.Error("nothing is the output of fio")
	}
}

// TestCut: truncated output never yields figures.
func TestCut(t *testing.T) {
	table, line := string(read(t, "iozone.txt")), strings.TrimSpace(string(read(t, "bonnie.csv")))
	whole := strings.TrimSpace(string(read(t, "fio-mixed.json")))
	rapid.Check(t, func(t *rapid.T) {
		if n := rapid.IntRange(0, len(whole)-1).Draw(t, "fio"); true {
			if _, err := parseFio([]byte(whole[:n])); err == nil {
				t.Fatalf("%d bytes of %d of fio are enough", n, len(whole))
			}
		}
		n := rapid.IntRange(0, strings.Index(table, "complete.")).Draw(t, "iozone")
		if _, _, err := parseIozone(table[:n]); err == nil {
			t.Fatalf("%d bytes of iozone are enough", n)
		}
		n = rapid.IntRange(0, strings.LastIndex(line, ",")-1).Draw(t, "bonnie")
		if _, err := parseBonnie(line[:n], blockColumns); err == nil {
			t.Fatalf("%d bytes of bonnie++ are enough", n)
		}
	})
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]test.Bytes{"4KiB": 4096, "4k": 4096, "1MiB": 1 << 20, "1 M": 1 << 20,
		"2GiB": 2 << 30, "512": 512, "1TiB": 1 << 40} {
		var b test.Bytes
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want {
			t.Errorf("%s: %v, %v", text, b, err)
		}
	}
	for _, text := range []string{"", "0", "-4k", "1.5M", "4KB", "9999999TiB", "k"} {
		if err := new(test.Bytes).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is a size", text)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		b := test.Bytes(rapid.Int64Range(1, 1<<50).Draw(t, "bytes"))
		var again test.Bytes
		if err := again.UnmarshalText([]byte(b.String())); err != nil || again != b {
			t.Fatalf("%d is written %s and read as %d (%v)", int64(b), b, int64(again), err)
		}
	})
}
