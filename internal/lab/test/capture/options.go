package capture

import (
	"time"

	"orrery/internal/lab/spead"
	"orrery/internal/lab/test"
)

// options are the keys of the test in an experiment. docs/lab.md has the comments of the fields.
type options struct {
	// Default `"orrery"`: or `"spead2"`, if the image has it
	Program string `toml:"program"`
	// Default `"256KiB"`: data in a heap
	Heap test.Bytes `toml:"heap"`
	// Default `1472`: largest packet in bytes, with its header
	Packet test.Bytes `toml:"packet"`
	// Default `1`: streams at once, each to its own port
	Sockets int `toml:"sockets"`
	// Default `"16MiB"`: of each receiving socket; if a place allows less (`net.core.rmem_max`), the
	// smallest in all
	Buffer test.Bytes `toml:"buffer"`
	// Default `7148`: of the first copy; further ones follow
	Port int `toml:"port"`
	// Default `true`: the sender passes many packets to the kernel at once
	GSO bool `toml:"gso"`
	// Default `"1s"`: length of a trial
	Trial time.Duration `toml:"trial"`
	// Default `9`: at each rate
	Trials int `toml:"trials"`
	// Default `2`: how many of those may lose packets at a lossless rate
	Lossy int `toml:"lossy"`
	// Default `0.01`: of the rate: 1 %
	Precision float64 `toml:"precision"`
	// Default `0`: highest rate, such as `"10Gbit/s"`; 0: no limit
	Most test.Rate `toml:"most"`
	// Default `true`: also find the paper's figure
	Paper bool `toml:"paper"`
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
