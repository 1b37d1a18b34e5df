package capture

import (
	"math"
	"strconv"
	"strings"
	"time"

	"orrery/internal/lab/spead"
	"orrery/internal/problem"
)

// options are the keys of the test in an experiment.
type options struct {
	Program   string        `toml:"program"`   // orrery, or spead2: its own programs, which must be in the places
	Heap      bytes         `toml:"heap"`      // data of a heap
	Packet    bytes         `toml:"packet"`    // the largest, with its SPEAD header
	Sockets   int           `toml:"sockets"`   // streams at once, each to a port of its own
	Buffer    bytes         `toml:"buffer"`    // of each socket of the receiver
	Port      int           `toml:"port"`      // of the first copy; others follow
	GSO       bool          `toml:"gso"`       // the sender gives the kernel many packets at once
	Trial     time.Duration `toml:"trial"`     // length of each
	Trials    int           `toml:"trials"`    // at a rate
	Lossy     int           `toml:"lossy"`     // of those, at a rate that counts as lossless
	Precision float64       `toml:"precision"` // of the rate: 0.01 is 1 %
	Most      rate          `toml:"most"`      // do not try more; 0: no bound
	Paper     bool          `toml:"paper"`     // also the paper's own figure
}

// The programs.
const (
	ours   = "orrery"
	spead2 = "spead2"
)

// defaults: the trials are those of MLRsearch (draft-ietf-bmwg-mlrsearch) made short; the port is what SPEAD's programs use; the buffer is
// what spead2's documentation advises.
func defaults() options {
	return options{
		Program: ours, Heap: 256 << 10, Packet: 1472, Sockets: 1, Buffer: 16 << 20, Port: 7148, GSO: true,
		Trial: time.Second, Trials: 9, Lossy: 2, Precision: 0.01, Paper: true,
	}
}

func (o *options) check() error {
	var all problem.List
	wrong := func(cure, format string, args ...any) {
		all = append(all, problem.New(problem.Mistake, format, args...).Try("%s", cure))
	}
	if o.Program != ours && o.Program != spead2 {
		wrong("write orrery or spead2", "program: %q is none that sends SPEAD", o.Program)
	}
	if err := (spead.SendOptions{Heap: int(o.Heap), Packet: int(o.Packet)}).Check(); err != nil {
		wrong("the heap has 1 byte to 255 MiB, the packet 128 to 65487 bytes", "heap = %d, packet = %d", o.Heap, o.Packet)
	}
	if o.Sockets < 1 || o.Sockets > 64 {
		wrong("from 1 to 64", "sockets = %d", o.Sockets)
	}
	if o.Buffer < 4096 || o.Buffer > 1<<30 {
		wrong("from 4KiB to 1GiB", "buffer = %d", o.Buffer)
	}
	if o.Port < 1 || o.Port > 65535-64*8 {
		wrong("from 1 to 65023", "port = %d", o.Port)
	}
	if o.Trial < 20*time.Millisecond || o.Trial > time.Hour {
		wrong("from 20ms to 1h", "trial = %v", o.Trial)
	}
	if o.Trials < 1 || o.Trials > 1000 || o.Lossy < 0 || o.Lossy >= o.Trials {
		wrong("such as trials = 9, lossy = 2", "trials = %d, lossy = %d", o.Trials, o.Lossy)
	}
	if !(o.Precision >= 0.001 && o.Precision <= 0.2) {
		wrong("from 0.001 to 0.2", "precision = %g", o.Precision)
	}
	return all.OrNil()
}

// bytes is a size.
type bytes int64

// UnmarshalText reads "256KiB", "16MiB" or a number.
func (b *bytes) UnmarshalText(text []byte) error {
	n, err := scaled(string(text), map[string]float64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30})
	if err != nil || n != math.Trunc(n) || n < 1 || n > 1<<40 {
		return problem.New(problem.Mistake, "%q is no size", text).Try(`write "256KiB", "16MiB" or a number of bytes`)
	}
	*b = bytes(n)
	return nil
}

// rate is in bit/s.
type rate float64

// UnmarshalText reads "10Gbit/s", "500Mbit/s" or a number.
func (r *rate) UnmarshalText(text []byte) error {
	n, err := scaled(string(text), map[string]float64{"Gbit/s": 1e9, "Mbit/s": 1e6, "kbit/s": 1e3})
	if err != nil || !(n >= 0 && n < 1e15) {
		return problem.New(problem.Mistake, "%q is no rate", text).Try(`write "10Gbit/s", "500Mbit/s" or a number of bit/s; 0: no bound`)
	}
	*r = rate(n)
	return nil
}

func scaled(text string, units map[string]float64) (float64, error) {
	factor := 1.0
	for unit, f := range units {
		if rest, ok := strings.CutSuffix(text, unit); ok {
			text, factor = rest, f
			break
		}
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return n * factor, err
}
