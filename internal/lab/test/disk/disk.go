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

// options are the keys of the test in an experiment.
type options struct {
	Program  string       `toml:"program"`  // fio, iozone, bonnie++
	Size     test.Bytes   `toml:"size"`     // of the file of each copy
	Direct   string       `toml:"direct"`   // O_DIRECT: auto, yes, no
	Matrices []string     `toml:"matrices"` // fio: named lists of jobs
	Jobs     []job        `toml:"jobs"`     // fio: further jobs
	Seconds  float64      `toml:"seconds"`  // fio: per job
	WarmUp   float64      `toml:"warm_up"`  // fio: seconds that each job runs before it is measured
	Latency  bool         `toml:"latency"`  // fio: percentiles of completion latency are figures
	Engine   string       `toml:"engine"`   // fio: "" means psync, or libaio for jobs with a queue deeper than one
	Records  []test.Bytes `toml:"records"`  // iozone: record sizes
	// bonnie++: limit for growing the file when a phase is too short, or 0 for 8 GiB
	MaxSize test.Bytes `toml:"max_size"`
	Files   int        `toml:"files"` // bonnie++: files to create, in units of 1024, or 0 for none

	Characters bool `toml:"characters"` // bonnie++: also measure single characters (put_c and get_c)
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
