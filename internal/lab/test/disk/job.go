package disk

import (
	"fmt"
	"slices"
	"strings"

	"orrery/internal/lab/test"
)

// A job is one run of fio. It has one figure, or two if it both reads and writes.
type job struct {
	RW      string     `toml:"rw"`      // as in fio: read, write, randread, randwrite, rw, randrw
	Block   test.Bytes `toml:"block"`   // default 4KiB
	Depth   int        `toml:"depth"`   // queue depth of each thread
	Threads int        `toml:"threads"` // all threads use the same file
	Read    int        `toml:"read"`    // percent of reads in rw and randrw; default 70
	Unit    string     `toml:"unit"`    // 1/s or B/s; default 1/s for random and B/s for sequential access
}

// The units of figures.
const (
	perSecond      = "1/s"
	bytesPerSecond = "B/s"
)

var kinds = []string{"read", "write", "randread", "randwrite", "rw", "randrw"}

func (j *job) setDefaults() {
	if j.Block == 0 {
		j.Block = 4 << 10
	}
	if j.Depth == 0 {
		j.Depth = 1
	}
	if j.Threads == 0 {
		j.Threads = 1
	}
	if j.mixed() && j.Read == 0 {
		j.Read = 70
	}
	if j.Unit == "" {
		j.Unit = j.usual()
	}
}

func (j job) mixed() bool      { return strings.HasSuffix(j.RW, "rw") }
func (j job) random() bool     { return strings.HasPrefix(j.RW, "rand") }
func (j job) writes() bool     { return j.mixed() || strings.HasSuffix(j.RW, "write") }
func (j job) sequential() bool { return !j.random() }

func (j job) usual() string {
	if j.random() {
		return perSecond
	}
	return bytesPerSecond
}

func (j job) check(size test.Bytes, wrong test.MistakeFunc) {
	if !slices.Contains(kinds, j.RW) {
		wrong("write one of "+strings.Join(kinds, ", "), "jobs: rw = %q", j.RW)
		return
	}
	if j.Block%512 != 0 || int64(j.Block)*int64(j.Threads) > int64(size) {
		wrong("write a multiple of 512 bytes; the file needs a block for each thread",
			"jobs: %s: block of %s in a file of %s", j.name(), j.Block, size)
	}
	if j.Depth < 1 || j.Depth > 4096 || j.Threads < 1 || j.Threads > 2048 {
		wrong("write depth from 1 to 4096 and threads from 1 to 2048", "jobs: %s", j.name())
	}
	if !j.mixed() && j.Read != 0 || j.mixed() && (j.Read < 1 || j.Read > 99) {
		wrong("write a percentage from 1 to 99, only for rw and randrw", "jobs: %s: read = %d", j.name(), j.Read)
	}
	if j.Unit != perSecond && j.Unit != bytesPerSecond {
		wrong(`write "1/s" or "B/s"`, "jobs: %s: unit = %q", j.name(), j.Unit)
	}
}

// name returns the figure of a job, or the prefix of its figures, such as "randread 4k 16 threads".
func (j job) name() string {
	words := []string{j.RW}
	if j.mixed() {
		words = append(words, fmt.Sprintf("%d/%d", j.Read, 100-j.Read))
	}
	words = append(words, j.Block.String())
	if j.Depth > 1 {
		words = append(words, fmt.Sprintf("depth %d", j.Depth))
	}
	switch {
	case j.Threads == 1 && j.random():
		words = append(words, "1 thread")
	case j.Threads > 1:
		words = append(words, fmt.Sprintf("%d threads", j.Threads))
	}
	if j.Unit != j.usual() {
		words = append(words, j.Unit)
	}
	return strings.Join(words, " ")
}

// A stream is one direction of a job. It has a figure, and two for latency if requested.
type stream struct {
	figure string
	write  bool
}

func (j job) streams() []stream {
	if j.mixed() {
		return []stream{{j.name() + " read", false}, {j.name() + " write", true}}
	}
	return []stream{{j.name(), j.writes()}}
}

func (s stream) median() string { return s.figure + " p50" }
func (s stream) tail() string   { return s.figure + " p99" }

func (j job) figures(latency bool) []test.Figure {
	var all []test.Figure
	for _, s := range j.streams() {
		all = append(all, test.Figure{Name: s.figure, Unit: j.Unit, Better: test.More, Aggregate: test.Sum})
		if latency {
			all = append(all, test.Figure{Name: s.median(), Unit: "s", Better: test.Less, Aggregate: test.Mean},
				test.Figure{Name: s.tail(), Unit: "s", Better: test.Less, Aggregate: test.Mean})
		}
	}
	return all
}
