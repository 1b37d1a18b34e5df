// Package disk measures the disk of a place, with fio, iozone or bonnie++.
//
// It follows the disk tests of INFN (sequential writes on virtual and physical machines), of CERN
// and Intel (random reads by threads, and by block with 512 threads; mixed; random writes) and of
// Rx-OSD (iozone: write, rewrite, read, reread and random by record size). The output formats are
// those of Debian 12: fio(1) 3.33 (JSON), iozone(1) 3.489 (a table) and bonnie++(8) 2.00a (CSV).
package disk

import (
	"time"

	"orrery/internal/lab/test"
)

// options are the keys of the test in an experiment. docs/lab.md has the comments of the fields.
type options struct {
	// Default `"fio"`: `"bonnie++"`, or `"iozone"`, which needs `components = ["main", "non-free"]`
	// and `packages = ["iozone3"]` at the head of the file
	Program string `toml:"program"`
	// Default `"256MiB"`: of each copy's file
	Size test.Bytes `toml:"size"`
	// Default `"auto"`: O_DIRECT: if the file system supports it, `"yes"` or `"no"`
	Direct string `toml:"direct"`
	// Default `["quick"]`: fio: jobs from the papers: `"quick"`, `"sequential write by depth"`,
	// `"sequential write by block"`, `"sequential read by block"`, `"random read 4k by threads"`,
	// `"random read by block at 512 threads"`, `"random write"`, `"mixed 70/30"`
	Matrices []string `toml:"matrices"`
	// Default none: fio, in addition: tables with `rw` (`"read"`, `"write"`, `"randread"`,
	// `"randwrite"`, `"rw"`, `"randrw"`), `block` (`"4KiB"`), `depth` (1), `threads` (1, on the same
	// file), `read` (70 percent, for mixed jobs), `unit` (`"1/s"` or `"B/s"`)
	Jobs []job `toml:"jobs"`
	// Default `1.0`: fio: of each job; from 3 on, a figure for each second, too
	Seconds float64 `toml:"seconds"`
	// Default `0.2`: fio: seconds before each job (`ramp_time`); 0: none
	WarmUp float64 `toml:"warm_up"`
	// Default `false`: fio: percentiles of the latency, too
	Latency bool `toml:"latency"`
	// Default `psync`, or `libaio` if a depth is more than one: fio's I/O engine
	Engine string `toml:"engine"`
	// Default 4, 64 and 1024 KiB: iozone: record sizes, such as `["4KiB", "1MiB"]`
	Records []test.Bytes `toml:"records"`
	// Default `"8GiB"`, or `size`: bonnie++: the file is doubled until each pass takes 0.8 s in the
	// fastest place, up to this size, the free space, or 20 s a run
	MaxSize test.Bytes `toml:"max_size"`
	// Default `0`: bonnie++: this many times 1024 files to create, look up and delete; 0: none
	Files int `toml:"files"`
	// Default `false`: bonnie++: single characters, too (`put_c`, `get_c`); about 20 s more
	Characters bool `toml:"characters"`
}

// The programs.
const (
	byFio    = "fio"
	byIozone = "iozone"
	byBonnie = "bonnie++"
)

// When to use O_DIRECT.
const (
	directAuto = "auto" // if the file system supports it
	directYes  = "yes"
	directNo   = "no"
)

// New creates the test from its options.
func New(decode func(options any) error) (test.Test, error) {
	o := options{Program: byFio, Size: 256 << 20, Direct: directAuto, WarmUp: warmUp}
	if err := test.Read(decode, &o, o.check); err != nil {
		return nil, err
	}
	ground := &workspace{options: o}
	switch o.Program {
	case byIozone:
		return &iozone{ground}, nil
	case byBonnie:
		return &bonnie{workspace: ground}, nil
	}
	return &fio{ground, o.jobs()}, nil
}

// warmUp is the default for how long a fio job runs before it is measured, in seconds, so that the
// device's queues and caches have settled.
const warmUp = 0.2

// setDefaults sets the unset options of the program to their defaults.
func (o *options) setDefaults() {
	switch o.Program {
	case byFio:
		if o.Matrices == nil && o.Jobs == nil {
			o.Matrices = []string{quick}
		}
		if o.Seconds == 0 {
			o.Seconds = 1
		}
	case byIozone:
		if o.Records == nil {
			o.Records = []test.Bytes{4 << 10, 64 << 10, 1 << 20}
		}
	case byBonnie:
		if o.MaxSize == 0 {
			o.MaxSize = max(o.Size, 8<<30)
		}
	}
	for i := range o.Jobs {
		o.Jobs[i].setDefaults()
	}
}

func (o *options) check(wrong test.MistakeFunc) {
	o.setDefaults()
	if o.Direct != directAuto && o.Direct != directYes && o.Direct != directNo {
		wrong(`write "auto", "yes" or "no"`, "direct = %q", o.Direct)
	}
	if o.Size < 1<<20 || o.Size%4096 != 0 {
		wrong("write at least 1MiB, in multiples of 4KiB", "size = %s", o.Size)
	}
	o.checkForeign(wrong)
	switch o.Program {
	case byFio:
		o.checkFio(wrong)
	case byIozone:
		o.checkIozone(wrong)
	case byBonnie:
		o.checkBonnie(wrong)
	default:
		wrong("write \"fio\", \"iozone\" or \"bonnie++\"", "program = %q", o.Program)
	}
}

// checkForeign reports options that belong to a program other than the selected one.
func (o *options) checkForeign(wrong test.MistakeFunc) {
	for _, key := range []struct {
		name, of string
		given    bool
	}{
		{"matrices", byFio, o.Matrices != nil}, {"jobs", byFio, o.Jobs != nil}, {"seconds", byFio, o.Seconds != 0},
		{"warm_up", byFio, o.WarmUp != warmUp},
		{"latency", byFio, o.Latency}, {"engine", byFio, o.Engine != ""},
		{"records", byIozone, o.Records != nil}, {"files", byBonnie, o.Files != 0}, {"max_size", byBonnie, o.MaxSize != 0},
		{"characters", byBonnie, o.Characters},
	} {
		if key.given && key.of != o.Program {
			wrong("remove it", "%s applies to program = %q, not to %q", key.name, key.of, o.Program)
		}
	}
}

// seconds converts an option in seconds to a duration.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
