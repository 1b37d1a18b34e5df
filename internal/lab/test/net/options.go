package net

import (
	"slices"
	"strconv"
	"strings"

	"orrery/internal/lab/test"
)

// options are the keys of the test in an experiment. docs/lab.md has the comments of the fields.
type options struct {
	// Default `["tcp", "udp"]`: for throughput
	Protocols []string `toml:"protocols"`
	// Default `["forward", "reverse"]`: forward: to the far end
	Directions []string `toml:"directions"`
	// Default `[1, 5]`: at once
	Streams []int `toml:"streams"`
	// Default `1`: of each measurement
	Seconds int `toml:"seconds"`
	// Default `1`: seconds that TCP sends before (iperf's `-O`); 0: none
	WarmUp int `toml:"warm_up"`
	// Default `0`: of all UDP streams together, such as `"100Mbit/s"`; 0: as fast as possible, losses
	// without a verdict
	Rate test.Rate `toml:"rate"`
	// Default the kernel's choice: buffers of sockets, such as `"256KiB"` (iperf's `-w`)
	Window test.Bytes `toml:"window"`
	// Default `true`: measure the rate of small packets
	Packets bool `toml:"packets"`
	// Default `true`: measure the round trip of a small UDP message; IPv4 only
	RTT bool `toml:"rtt"`
	// Default `5201`: of the first copy at the far end; further ones follow
	Port int `toml:"port"`
}

func defaults() options {
	return options{
		Protocols: []string{tcp, udp}, Directions: []string{forward, reverse}, Streams: []int{1, 5}, Seconds: 1, WarmUp: 1,
		Packets: true, RTT: true, Port: 5201,
	}
}

// The values of the options, which are also parts of the figures' names.
const (
	tcp     = "tcp"
	udp     = "udp"
	forward = "forward"
	reverse = "reverse"
)

// The limits of iperf3 3.12 (iperf_api.h: MAX_STREAMS, MAX_TIME, MAX_TCP_BUFFER, MAX_OMIT_TIME).
const (
	maxStreams     = 128
	maxSeconds     = 86400
	maxWindowBytes = 512 << 20
	maxWarmUp      = 60
)

func (o *options) check(wrong test.MistakeFunc) {
	known := func(key string, words, of []string) {
		for _, w := range words {
			if !slices.Contains(of, w) {
				wrong("write some of "+strings.Join(of, ", "), "%s: %q is unknown", key, w)
			}
		}
		test.CheckDuplicates(key, words, wrong)
	}
	known("protocols", o.Protocols, []string{tcp, udp})
	known("directions", o.Directions, []string{forward, reverse})
	test.CheckDuplicates("streams", o.Streams, wrong)
	for _, n := range o.Streams {
		if n < 1 || n > maxStreams {
			wrong("write a number from 1 to "+strconv.Itoa(maxStreams), "streams: %d", n)
		}
	}
	if o.Seconds < 1 || o.Seconds > maxSeconds {
		wrong("write whole seconds, at least 1", "seconds = %d", o.Seconds)
	}
	if o.WarmUp < 0 || o.WarmUp > maxWarmUp {
		wrong("write whole seconds, from 0 to "+strconv.Itoa(maxWarmUp), "warm_up = %d", o.WarmUp)
	}
	if o.Window > maxWindowBytes {
		wrong("write at most 512MiB, the limit of iperf3", "window = %s", o.Window)
	}
	if o.Port < 1 || o.Port > 65000 {
		wrong("write a number from 1 to 65000; further copies use the following ports", "port = %d", o.Port)
	}
	if len(o.parts()) == 0 {
		wrong("set protocols with directions and streams, packets or rtt", "there is nothing to measure")
	}
}
