package capture

import (
	"time"

	"orrery/internal/lab/spead"
	"orrery/internal/lab/test"
)

// options are the keys of the test in an experiment.
type options struct {
	// orrery, or spead2 for spead2's own programs, which must exist in the places
	Program string        `toml:"program"`
	Heap    test.Bytes    `toml:"heap"`    // data bytes of a heap
	Packet  test.Bytes    `toml:"packet"`  // largest packet, including its SPEAD header
	Sockets int           `toml:"sockets"` // number of streams, each with its own port
	Buffer  test.Bytes    `toml:"buffer"`  // size for each socket of the receiver
	Port    int           `toml:"port"`    // of the first copy; other copies use the following ports
	GSO     bool          `toml:"gso"`     // the sender passes many packets to the kernel in one call
	Trial   time.Duration `toml:"trial"`   // duration of each trial
	Trials  int           `toml:"trials"`  // trials per rate
	// how many of those may lose packets at a rate that counts as lossless
	Lossy     int       `toml:"lossy"`
	Precision float64   `toml:"precision"` // relative precision of the rate: 0.01 is 1 %
	Most      test.Rate `toml:"most"`      // highest rate to try, or 0 for no limit
	Paper     bool      `toml:"paper"`     // also measure the paper's own figure
}

// The values of Program.
const (
	ours   = "orrery"
	spead2 = "spead2"
)

// defaults returns the default options. The trials are those of MLRsearch
// (draft-ietf-bmwg-mlrsearch), shortened. The port is the one that SPEAD programs use. The buffer
// is what spead2's documentation recommends.
func defaults() options {
	return options{
		Program: ours, Heap: 256 << 10, Packet: 1472, Sockets: 1, Buffer: 16 << 20, Port: 7148, GSO: true,
		Trial: time.Second, Trials: 9, Lossy: 2, Precision: 0.01, Paper: true,
	}
}

func (o *options) check(wrong test.MistakeFunc) {
	if o.Program != ours && o.Program != spead2 {
		wrong("write \"orrery\" or \"spead2\"", "program = %q is unknown", o.Program)
	}
	if err := (spead.SendOptions{Heap: int(o.Heap), Packet: int(o.Packet)}).Check(); err != nil {
		wrong("a heap has 1 byte to 255 MiB, a packet 128 to 65487 bytes", "heap = %s, packet = %s", o.Heap, o.Packet)
	}
	if o.Sockets < 1 || o.Sockets > 64 {
		wrong("write a number from 1 to 64", "sockets = %d", o.Sockets)
	}
	if o.Buffer < 4096 || o.Buffer > 1<<30 {
		wrong("write a size from 4KiB to 1GiB", "buffer = %s", o.Buffer)
	}
	if o.Port < 1 || o.Port > 65535-64*8 {
		wrong("write a number from 1 to 65023", "port = %d", o.Port)
	}
	if o.Trial < 20*time.Millisecond || o.Trial > time.Hour {
		wrong("write a duration from 20ms to 1h", "trial = %v", o.Trial)
	}
	if o.Trials < 1 || o.Trials > 1000 || o.Lossy < 0 || o.Lossy >= o.Trials {
		wrong("write, for example, trials = 9, lossy = 2", "trials = %d, lossy = %d", o.Trials, o.Lossy)
	}
	if !(o.Precision >= 0.001 && o.Precision <= 0.2) {
		wrong("write a number from 0.001 to 0.2", "precision = %g", o.Precision)
	}
}
