package net

import (
	"slices"
	"strconv"
	"strings"

	"orrery/internal/problem"
)

// options are the keys of the test in an experiment.
type options struct {
	Protocols  []string `toml:"protocols"`  // of throughput: tcp, udp
	Directions []string `toml:"directions"` // forward: from the place under test to the far end; reverse: back
	Streams    []int    `toml:"streams"`    // at once
	Seconds    int      `toml:"seconds"`    // of each measurement
	Rate       rate     `toml:"rate"`       // of UDP, all streams together; 0: as fast as it goes
	Packets    bool     `toml:"packets"`    // small-packet rate
	RTT        bool     `toml:"rtt"`        // round trip of a small UDP message
	Port       int      `toml:"port"`       // of the first copy at the far end; each further one has the next
}

func defaults() options {
	return options{
		Protocols: []string{tcp, udp}, Directions: []string{forward, reverse}, Streams: []int{1, 5}, Seconds: 1, Packets: true, RTT: true, Port: 5201,
	}
}

// The words of the options, which are those of the figures as well.
const (
	tcp     = "tcp"
	udp     = "udp"
	forward = "forward"
	reverse = "reverse"
)

// The bounds of iperf3 3.12 (iperf_api.h: MAX_STREAMS, MAX_TIME).
const (
	mostStreams = 128
	mostSeconds = 86400
)

func (o *options) check() error {
	var all problem.List
	wrong := func(cure, format string, args ...any) {
		all = append(all, problem.New(problem.Mistake, format, args...).Try("%s", cure))
	}
	known := func(key string, words, of []string) {
		for _, w := range words {
			if !slices.Contains(of, w) {
				wrong("give some of "+strings.Join(of, ", "), "%s: %q is none", key, w)
			}
		}
		twice(key, words, wrong)
	}
	known("protocols", o.Protocols, []string{tcp, udp})
	known("directions", o.Directions, []string{forward, reverse})
	twice("streams", o.Streams, wrong)
	for _, n := range o.Streams {
		if n < 1 || n > mostStreams {
			wrong("iperf3 can have from 1 to "+strconv.Itoa(mostStreams), "streams: %d", n)
		}
	}
	if o.Seconds < 1 || o.Seconds > mostSeconds {
		wrong("iperf3 takes whole seconds, at least 1", "seconds = %d", o.Seconds)
	}
	if o.Port < 1 || o.Port > 65000 {
		wrong("give one from 1 to 65000: copies take those after it", "port = %d", o.Port)
	}
	if len(o.parts()) == 0 {
		wrong("give protocols with directions and streams, or packets, or rtt", "there is nothing to measure")
	}
	return all.OrNil()
}

func twice[T comparable](key string, words []T, wrong func(cure, format string, args ...any)) {
	for i, w := range words {
		if slices.Contains(words[:i], w) {
			wrong("leave one of them out", "%s: %v is there twice", key, w)
		}
	}
}

// rate is in bit/s, written as "100Mbit/s" or as a number.
type rate float64

// UnmarshalText reads a rate.
func (r *rate) UnmarshalText(text []byte) error {
	number, factor := strings.TrimSpace(string(text)), 1.0
	for _, u := range []struct {
		name   string
		factor float64
	}{{"Gbit/s", 1e9}, {"Mbit/s", 1e6}, {"kbit/s", 1e3}, {"bit/s", 1}} {
		if rest, ok := strings.CutSuffix(number, u.name); ok {
			number, factor = strings.TrimSpace(rest), u.factor
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n >= 0 && n*factor < 1e15) {
		return problem.New(problem.Mistake, "%q is no rate", text).Try(`write "100Mbit/s", "10Gbit/s" or a number of bit/s; 0: as fast as it goes`)
	}
	*r = rate(n * factor)
	return nil
}
