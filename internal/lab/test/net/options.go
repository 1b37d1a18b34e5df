package net

import (
	"slices"
	"strconv"
	"strings"

	"orrery/internal/lab/test"
)

// options are the keys of the test in an experiment.
type options struct {
	Protocols  []string  `toml:"protocols"`  // for throughput: tcp, udp
	Directions []string  `toml:"directions"` // forward (from the place under test to the far end) or reverse
	Streams    []int     `toml:"streams"`    // numbers of concurrent streams
	Seconds    int       `toml:"seconds"`    // per measurement
	WarmUp     int       `toml:"warm_up"`    // seconds that TCP sends before it is measured, because of slow start
	Rate       test.Rate `toml:"rate"`       // of UDP, for all streams together, or 0 for no limit
	// socket buffers for throughput (-w of iperf3), or 0 for the kernel's default
	Window  test.Bytes `toml:"window"`
	Packets bool       `toml:"packets"` // measure the rate of small packets
	RTT     bool       `toml:"rtt"`     // measure the round trip of a small UDP message
	// of the first copy at the far end; each further copy uses the next port
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
