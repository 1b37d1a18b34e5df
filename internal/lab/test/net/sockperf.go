package net

import (
	"regexp"
	"strconv"

	"orrery/internal/problem"
	"orrery/internal/text/pattern"
)

// trips is the result of sockperf for round trips, in seconds.
type trips struct {
	Version      string  `json:"version"`
	Observations int     `json:"observations"`
	Dropped      int     `json:"dropped"`
	Mean         float64 `json:"mean"`
	Median       float64 `json:"median"`
	Tail         float64 `json:"p99"`
	Least        float64 `json:"least"`
	Most         float64 `json:"most"`
}

// Patterns for the output of sockperf 3.7 with --full-rtt. Percentiles are in µs. The output
// contains colour codes even without a terminal.
var (
	sockperfVersion = pattern.New(`== version #(\S+) ==`)
	sockperfSeen    = pattern.New(`Total (\d+) observations`)
	sockperfDropped = pattern.New(`# dropped messages = (\d+)`)
	sockperfMean    = pattern.New(`avg-rtt=([0-9.]+)`)
	sockperfMedian  = pattern.New(`percentile 50\.000 =\s*([0-9.]+)`)
	sockperfTail    = pattern.New(`percentile 99\.000 =\s*([0-9.]+)`)
	sockperfMin     = pattern.New(`<MIN> observation =\s*([0-9.]+)`)
	sockperfMax     = pattern.New(`<MAX> observation =\s*([0-9.]+)`)
	sockperfSilence = pattern.New(`No messages were received from the server|Server is down|ERROR:.*`)
)

// parseSockperf parses the output of sockperf ping-pong --full-rtt. The exit status is 0 even if
// the client got no answer.
func parseSockperf(text []byte) (*trips, error) {
	if said := sockperfSilence().Find(text); said != nil {
		return nil, problem.New(problem.Failed, "sockperf got no answer: %s", said).
			Try("check whether a firewall blocks its UDP port")
	}
	var missing string
	number := func(what string, in *regexp.Regexp) float64 {
		found := in.FindSubmatch(text)
		if found != nil {
			if n, err := strconv.ParseFloat(string(found[1]), 64); err == nil {
				return n
			}
		}
		if missing == "" {
			missing = what
		}
		return 0
	}
	const us = 1e-6
	t := trips{
		Observations: int(number("number of observations", sockperfSeen())),
		Dropped:      int(number("number of dropped messages", sockperfDropped())),
		Mean:         us * number("mean", sockperfMean()),
		Median:       us * number("median", sockperfMedian()),
		Tail:         us * number("99 % percentile", sockperfTail()),
		Least:        us * number("least", sockperfMin()),
		Most:         us * number("most", sockperfMax()),
	}
	if v := sockperfVersion().FindSubmatch(text); v != nil {
		t.Version = string(v[1])
	}
	if missing != "" {
		return nil, problem.New(problem.Failed, "the output of sockperf has no %s (%d bytes in total)", missing, len(text)).
			Try("check whether it was killed; the lab supports version 3.7 with --full-rtt")
	}
	return &t, nil
}
