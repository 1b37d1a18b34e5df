package disk

import (
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"orrery/internal/lab/test"
)

func from(text string) func(any) error {
	return func(options any) error {
		return toml.NewDecoder(strings.NewReader(text)).DisallowUnknownFields().Decode(options)
	}
}

func figures(t *testing.T, text string) []string {
	t.Helper()
	d, err := New(from(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var names []string
	for _, f := range d.Figures() {
		names = append(names, f.Name+" ["+f.Unit+"]")
	}
	return names
}

func TestFigures(t *testing.T) {
	for text, want := range map[string][]string{
		"": {"write 1M depth 4 [B/s]", "randread 4k 1 thread [1/s]", "randread 4k 16 threads [1/s]",
			"randrw 70/30 4k 16 threads read [1/s]", "randrw 70/30 4k 16 threads write [1/s]"},
		"matrices = [\"random read by block at 512 threads\"]\nsize = \"1GiB\"": {"randread 4k 512 threads B/s [B/s]",
			"randread 16k 512 threads B/s [B/s]",
			"randread 64k 512 threads B/s [B/s]", "randread 256k 512 threads B/s [B/s]", "randread 1M 512 threads B/s [B/s]"},
		"matrices = [\"sequential write by depth\"]": {"write 1M [B/s]",
			"write 1M depth 4 [B/s]", "write 1M depth 16 [B/s]", "write 1M depth 32 [B/s]"},
		"latency = true\n[[jobs]]\nrw = \"randwrite\"\nblock = \"8KiB\"\ndepth = 2": {"randwrite 8k depth 2 1 thread [1/s]",
			"randwrite 8k depth 2 1 thread p50 [s]", "randwrite 8k depth 2 1 thread p99 [s]"},
		"program = \"iozone\"\nrecords = [\"4KiB\"]": {"write 4k [B/s]", "rewrite 4k [B/s]",
			"read 4k [B/s]", "reread 4k [B/s]", "random read 4k [B/s]", "random write 4k [B/s]"},
		"program = \"bonnie++\"\ncharacters = true": {"character write [B/s]", "character read [B/s]", "block write [B/s]",
			"block rewrite [B/s]",
			"block read [B/s]", "seeks [1/s]"},
		"program = \"bonnie++\"": {"block write [B/s]", "block rewrite [B/s]", "block read [B/s]", "seeks [1/s]"},
	} {
		if got := figures(t, text); !slices.Equal(got, want) {
			t.Errorf("%s:\ngot  %q\nwant %q", text, got, want)
		}
	}
}

// TestMatrices: no figure occurs twice in all matrices together.
func TestMatrices(t *testing.T) {
	all := figures(t, `size = "4GiB"`+"\nmatrices = [\""+strings.Join(matrixNames(), `", "`)+`"]`)
	slices.Sort(all)
	if n := len(slices.Compact(slices.Clone(all))); n != len(all) || n < 35 {
		t.Errorf("%d of %d figures: %q", n, len(all), all)
	}
}

func TestNeeds(t *testing.T) {
	for text, want := range map[string][]string{"": {"fio"}, `program = "iozone"`: nil,
		`program = "bonnie++"`: {"bonnie++"}} {
		d, err := New(from(text))
		if err != nil {
			t.Fatal(err)
		}
		disk := int64(256 << 20)
		if strings.Contains(text, "bonnie") {
			disk = 8 << 30 // max_size: the limit to which the file may grow
		}
		if n := d.Needs(); !slices.Equal(n.Packages, want) || n.Disk != disk || n.Far {
			t.Errorf("%s: %+v", text, n)
		}
		if d.Time() <= 0 {
			t.Errorf("%s takes %s", text, d.Time())
		}
	}
}

func TestInvalid(t *testing.T) {
	for text, want := range map[string]string{
		`program = "dd"`:                      `program = "dd" (write "fio", "iozone" or "bonnie++")`,
		`direct = "maybe"`:                    `direct = "maybe" (write "auto", "yes" or "no")`,
		`size = "4KiB"`:                       "size = 4k (write at least 1MiB",
		`matrices = ["random writes"]`:        `matrices: there is no "random writes" (did you mean random write?)`,
		`matrices = []`:                       "there is nothing to measure",
		"seconds = -1":                        "seconds = -1",
		"warm_up = -1.0":                      "warm_up = -1",
		"program = \"bonnie++\"\nwarm_up = 1": `warm_up applies to program = "fio"`,
		"[[jobs]]\nrw = \"trim\"":             `jobs: rw = "trim" (write one of read, write,`,
		"[[jobs]]\nrw = \"read\"\nread = 50":  "jobs: read 4k: read = 50",
		"[[jobs]]\nrw = \"read\"\ndepth = -1": "write depth from 1 to 4096",
		"[[jobs]]\nrw = \"read\"\nblock = \"1MiB\"\nthreads = 512": "jobs: read 1M 512 threads: block of 1M in a file of 256M",
		"[[jobs]]\nrw = \"read\"\nunit = \"MB/s\"":                 `unit = "MB/s" (write "1/s" or "B/s")`,
		`records = ["4KiB"]`:                                       `records applies to program = "iozone", not to "fio" (remove it)`,
		"program = \"iozone\"\nlatency = true":                     `latency applies to program = "fio", not to "iozone"`,
		"program = \"iozone\"\nrecords = [\"512\"]":                "records: 512",
		"program = \"bonnie++\"\nsize = \"3MiB\"":                  "bonnie++ needs an even number of MiB",
		"program = \"bonnie++\"\nmax_size = \"128MiB\"":            "max_size = 128M (write at least size",
		"program = \"bonnie++\"\nfiles = -1":                       "files = -1",
	} {
		if _, err := New(from(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

func TestLabels(t *testing.T) {
	g := &workspace{options: options{Size: 256 << 20}}
	for _, c := range []struct {
		f    workDir
		want string
	}{
		{workDir{direct: true, can: true, memory: 8 << 30}, ""},
		{workDir{can: true, memory: 8 << 30}, "page-cache"},
		{workDir{memory: 8 << 30}, "o_direct page-cache"},
		{workDir{memory: 128 << 20}, "o_direct"},
	} {
		if got := labelNames(c.f.labels(g)); got != c.want {
			t.Errorf("%+v: labels %s, want %s", c.f, got, c.want)
		}
	}
}

func labelNames(all []test.Label) string {
	var names []string
	for _, l := range all {
		names = append(names, l.Name)
	}
	return strings.Join(names, " ")
}

// TestArguments: threads with sequential access have separate parts of the file. Without O_DIRECT,
// writes end with fsync.
func TestArguments(t *testing.T) {
	f := &fio{&workspace{options: options{Size: 1 << 20, Seconds: 0.5, WarmUp: 0.2}}, nil}
	j := job{RW: "write", Block: 4096, Threads: 3}
	j.setDefaults()
	got := strings.Join(f.arguments(workDir{dir: "/d"}, j), " ")
	for _, want := range []string{"--filename=/d/fio.data", "--size=348160", "--offset_increment=348160", "--direct=0",
		"--end_fsync=1", "--ioengine=psync", "--runtime=500ms", "--ramp_time=200ms"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	j = job{RW: "randrw", Block: 4096, Depth: 8, Threads: 2}
	j.setDefaults()
	got = strings.Join(f.arguments(workDir{dir: "/d", direct: true}, j), " ")
	for _, want := range []string{"--size=1048576", "--direct=1", "--ioengine=libaio", "--iodepth=8", "--rwmixread=70"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	if strings.Contains(got, "fsync") || strings.Contains(got, "offset") {
		t.Error(got)
	}
}
