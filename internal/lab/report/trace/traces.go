// Package trace converts the probe's record into the traces of a report.
//
// The traces show how busy processors, disks and links were over the whole run and in the middle
// round, with the time span of each test. The package selects the largest ones, so that a page has
// few traces but all that matter.
package trace

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/probe"
	"orrery/internal/text/sanitize"
)

// A Trace holds the values of one counter for each second of the run.
type Trace struct {
	Name   string
	Unit   string // as in test.Figure, or "%" for shares in per cent
	Points []Tick
	Bands  []Span
}

// A Span is the time span of a measurement.
type Span struct {
	Name     string
	From, To float64
}

// A Tick is the value of one second. At is in seconds of measuring since the first.
type Tick struct{ At, Value float64 }

// minPause is the minimum gap in the record that counts as an interruption of the run, whose time is
// not drawn.
const minPause = time.Minute

// Of returns the nonzero counters of the whole run, and those of one round with its settings.
func Of(c *bundle.Contents) (run, round []Trace) {
	seconds := decode(c.Seconds)
	if len(seconds) < 2 {
		return nil, nil
	}
	at := clock(seconds)
	place := func(when time.Time) float64 { return position(seconds, at, when) }
	run = counters(seconds, at)
	rounds := mergeSpans(c.Trials, func(t bundle.Trial) string { return "round " + strconv.Itoa(t.Round) }, place)
	for i := range run {
		run[i].Bands = rounds
	}
	one := middleRound(c.Trials)
	settings := mergeSpans(one, func(t bundle.Trial) string { return t.Setting }, place)
	if len(settings) == 0 {
		return run, nil
	}
	from, to := settings[0].From, settings[len(settings)-1].To
	first, _ := slices.BinarySearch(at, from)
	last, _ := slices.BinarySearch(at, to)
	if last-first < 10 {
		return run, nil
	}
	shifted := make([]float64, last-first)
	for i := range shifted {
		shifted[i] = at[first+i] - from
	}
	round = counters(seconds[first:last], shifted)
	for i := range settings {
		settings[i].From -= from
		settings[i].To -= from
	}
	for i := range round {
		round[i].Bands = settings
	}
	return run, round
}

// middleRound returns the trials of the middle round of those that count, which is not affected by start
// and end.
func middleRound(trials []bundle.Trial) (one []bundle.Trial) {
	most := 0
	for _, t := range trials {
		most = max(most, t.Round)
	}
	for _, t := range trials {
		if most > 0 && t.Round == (most+1)/2 {
			one = append(one, t)
		}
	}
	return one
}

// mergeSpans merges consecutive trials with the same name.
func mergeSpans(trials []bundle.Trial, name func(bundle.Trial) string, place func(time.Time) float64) (all []Span) {
	trials = slices.Clone(trials)
	slices.SortStableFunc(trials, func(a, b bundle.Trial) int { return a.Began.Compare(b.Began) })
	for _, t := range trials {
		s := Span{name(t), place(t.Began), place(t.Ended)}
		if n := len(all); n > 0 && all[n-1].Name == s.Name {
			all[n-1].To = max(all[n-1].To, s.To)
		} else {
			all = append(all, s)
		}
	}
	return all
}

// position returns the position of a time on the axis without pauses.
func position(seconds []probe.Second, at []float64, when time.Time) float64 {
	i, _ := slices.BinarySearchFunc(seconds, when, func(s probe.Second, t time.Time) int { return s.At.Compare(t) })
	if i == len(seconds) {
		return at[len(at)-1]
	}
	// At is the end of a second, which began a second before.
	return max(0, at[i]-min(seconds[i].At.Sub(when).Seconds(), seconds[i].Took))
}

// counters returns the nonzero counters, the most important first.
func counters(seconds []probe.Second, at []float64) []Trace {
	var all []Trace
	add := func(name, unit string, value func(probe.Second) float64) {
		t := Trace{Name: sanitize.Line(name), Unit: unit, Points: make([]Tick, len(seconds))}
		moved := false
		for i, s := range seconds {
			t.Points[i] = Tick{at[i], value(s)}
			moved = moved || t.Points[i].Value != 0
		}
		if moved {
			all = append(all, t)
		}
	}
	add("processors of the host, busy", "%", func(s probe.Second) float64 { return 100 * s.CPU.Share() })
	for _, name := range cgroups(seconds) {
		add(ProcessorsOf(name), "1", func(s probe.Second) float64 { return perSecond(s, s.Cgroups[name].Total()) })
	}
	for _, name := range links(seconds) {
		add("through "+name, "bit/s", func(s probe.Second) float64 { return perSecond(s, 8*linkBytes(s, name)) })
	}
	for _, name := range disks(seconds) {
		add("read from "+name, "B/s", func(s probe.Second) float64 { return perSecond(s, float64(disk(s, name).ReadBytes)) })
		add("written to "+name, "B/s", func(s probe.Second) float64 {
			return perSecond(s, float64(disk(s, name).WrittenBytes))
		})
	}
	add("packets dropped by softnet", "1/s", func(s probe.Second) float64 {
		return perSecond(s, float64(s.Softnet.Dropped))
	})
	add("packets dropped at full UDP sockets of the host", "1/s",
		func(s probe.Second) float64 { return perSecond(s, float64(s.UDP.FullReceive)) })
	add("time stolen by the hypervisor", "%", func(s probe.Second) float64 {
		return 100 * shareOf(s.CPU.Steal, s.CPU.Total())
	})
	add("tasks waited for a processor", "%", func(s probe.Second) float64 { return 100 * perSecond(s, s.Stalls.CPU.Some) })
	add("tasks waited for a disk", "%", func(s probe.Second) float64 { return 100 * perSecond(s, s.Stalls.IO.Some) })
	add("tasks waited for memory", "%", func(s probe.Second) float64 { return 100 * perSecond(s, s.Stalls.Memory.Some) })
	return all
}

// decode skips lines that are not seconds.
func decode(lines []json.RawMessage) []probe.Second {
	var all []probe.Second
	for _, l := range lines {
		var s probe.Second
		if json.Unmarshal(l, &s) == nil && !s.At.IsZero() && s.Took > 0 {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b probe.Second) int { return a.At.Compare(b.At) })
	return all
}

// clock returns the time of each second since the first, without pauses.
func clock(seconds []probe.Second) []float64 {
	at := make([]float64, len(seconds))
	for i := 1; i < len(seconds); i++ {
		gap := seconds[i].At.Sub(seconds[i-1].At)
		if gap > minPause {
			gap = time.Second
		}
		at[i] = at[i-1] + gap.Seconds()
	}
	return at
}

func perSecond(s probe.Second, x float64) float64 { return x / s.Took }

func shareOf(x, of float64) float64 {
	if of <= 0 {
		return 0
	}
	return x / of
}

// ProcessorsOf returns the name of the trace of the processors that a node used.
func ProcessorsOf(node string) string { return "processors used by " + node }

func cgroups(seconds []probe.Second) []string {
	names := largest(seconds, 8, func(s probe.Second, took map[string]float64) {
		for name, u := range s.Cgroups {
			took[name] += u.Total()
		}
	})
	slices.Sort(names)
	return names
}

func links(seconds []probe.Second) []string {
	return largest(seconds, 4, func(s probe.Second, bytes map[string]float64) {
		for _, l := range s.Net {
			bytes[l.Name] += float64(l.Received.Bytes + l.Sent.Bytes)
		}
	})
}

func disks(seconds []probe.Second) []string {
	return largest(seconds, 1, func(s probe.Second, bytes map[string]float64) {
		for _, d := range s.Disks {
			bytes[d.Name] += float64(d.ReadBytes + d.WrittenBytes)
		}
	})
}

// largest returns at most n names, in descending order of what add sums up over all seconds.
func largest(seconds []probe.Second, n int, add func(s probe.Second, to map[string]float64)) (names []string) {
	all := map[string]float64{}
	for _, s := range seconds {
		add(s, all)
	}
	for name, x := range all {
		if x > 0 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(all[b], all[a]), cmp.Compare(a, b)) })
	return names[:min(n, len(names))]
}

func linkBytes(s probe.Second, name string) (bytes float64) {
	for _, l := range s.Net {
		if l.Name == name {
			bytes += float64(l.Received.Bytes + l.Sent.Bytes)
		}
	}
	return bytes
}

func disk(s probe.Second, name string) (found probe.Disk) {
	for _, d := range s.Disks {
		if d.Name == name {
			found = d
		}
	}
	return found
}

// Max returns the largest value.
func (t Trace) Max() (most float64) {
	for _, p := range t.Points {
		most = max(most, p.Value)
	}
	return most
}

// bins is the maximum number of bins in a trace: more cannot be distinguished.
const bins = 300

// Binned returns the mean and the maximum of each part of the time. The mean of a part without
// values is NaN.
func (t Trace) Binned(end float64) (mean, most []float64) {
	n := max(2, min(bins, len(t.Points)))
	mean, most = make([]float64, n), make([]float64, n)
	count := make([]float64, n)
	for _, p := range t.Points {
		i := min(n-1, int(p.At/max(end, 1e-9)*float64(n)))
		mean[i] += p.Value
		count[i]++
		most[i] = max(most[i], p.Value)
	}
	for i := range mean {
		mean[i] /= count[i] // NaN if there is none
	}
	return mean, most
}
