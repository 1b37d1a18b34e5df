package place

import (
	"context"
	"strconv"
	"strings"

	"orrery/internal/problem"
)

// Traffic is the traffic of an interface in bytes.
type Traffic struct {
	Received uint64 `json:"received"`
	Sent     uint64 `json:"sent"`
}

// Traffic reads the counters of all interfaces of a place from /proc/net/dev (proc(5)). They are
// those of the network namespace in which the place's commands run.
func (p *Place) Traffic(ctx context.Context) (map[string]Traffic, error) {
	out, err := Output(ctx, p, "/bin/cat", "/proc/self/net/dev")
	if err != nil {
		return nil, problem.New(problem.Failed, "the byte counters cannot be read").At(p.Name).Because(err)
	}
	return ParseTraffic(string(out)), nil
}

// ParseTraffic parses the text of /proc/net/dev and returns the byte counters.
func ParseTraffic(text string) map[string]Traffic {
	all := map[string]Traffic{}
	for name, n := range ParseLinks(text) {
		all[name] = Traffic{n[0], n[8]}
	}
	return all
}

// ParseLinks parses the text of /proc/net/dev: for each interface eight numbers for received and eight
// for sent data. It skips other lines.
func ParseLinks(text string) map[string][16]uint64 {
	all := map[string][16]uint64{}
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(line, ":")
		words := strings.Fields(rest)
		if !ok || len(words) != 16 {
			continue
		}
		var numbers [16]uint64
		for i, word := range words {
			n, err := strconv.ParseUint(word, 10, 64)
			ok = ok && err == nil
			numbers[i] = n
		}
		if ok {
			all[strings.TrimSpace(name)] = numbers
		}
	}
	return all
}
