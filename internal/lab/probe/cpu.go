package probe

import (
	"os"
	"time"

	"orrery/internal/problem"
)

// hertz is USER_HZ, the unit of processor time in /proc. It is 100 on every platform that Go
// supports (time(7)).
const hertz = 100

// CPU is the processor time of all processors since the host was booted.
type CPU struct {
	Busy  time.Duration // user, nice, system, irq and softirq
	Total time.Duration // Busy plus idle, iowait and steal
}

// ReadCPU reads the processor time. Its resolution is 10 ms.
func ReadCPU() (CPU, error) { return readCPU("/proc/stat") }

func readCPU(path string) (CPU, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return CPU{}, problem.New(problem.Unable, "the processor time of this host cannot be read").At(path).Because(err).
			Try("mount -t proc proc /proc")
	}
	first, _ := line(text)
	rest, ok := after(first, "cpu ")
	var t ticks
	if !ok || numbers(rest, t[:]) < 4 {
		return CPU{}, problem.New(problem.Unable, "invalid first line of /proc/stat: %q", first).At(path).
			Try("mount -t proc proc /proc")
	}
	const tick = time.Second / hertz
	busy := t[0] + t[1] + t[2] + t[5] + t[6]
	return CPU{time.Duration(busy) * tick, time.Duration(busy+t[3]+t[4]+t[7]) * tick}, nil
}

// Since returns the time after an earlier reading.
func (c CPU) Since(before CPU) CPU { return CPU{c.Busy - before.Busy, c.Total - before.Total} }

// Share returns the busy share, from 0 to 1.
func (c CPU) Share() float64 {
	if c.Total <= 0 {
		return 0
	}
	return float64(c.Busy) / float64(c.Total)
}

// ticks holds the numbers of a line of /proc/stat: user, nice, system, idle, iowait, irq, softirq,
// steal, guest, guest_nice.
type ticks [10]uint64

func (t ticks) since(before ticks) Times {
	var s [10]float64
	for i := range t {
		s[i] = float64(clockIncrease(t[i], before[i])) / hertz
	}
	return Times{s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7],
		(float64(clockIncrease(t[8], before[8]) + clockIncrease(t[9], before[9]))) / hertz}
}

// processors reads /proc/stat.
type processors struct {
	file                        *file
	all                         ticks
	each                        map[int]ticks // by number, only processors that are online
	switches, interrupts, forks uint64
	online                      []int // in this reading
}

func (p *processors) sample(s *Second) {
	text := p.file.read()
	if p.each == nil {
		p.each = map[int]ticks{}
	}
	p.online = p.online[:0]
	for len(text) > 0 {
		var l []byte
		l, text = line(text)
		name, rest := word(l)
		switch string(name) {
		case "cpu":
			var now ticks
			numbers(rest, now[:])
			s.CPU = now.since(p.all)
			p.all = now
		case "intr": // the first number is the sum; a thousand others may follow
			p.interrupts = p.count(rest, p.interrupts, &s.Interrupts)
		case "ctxt":
			p.switches = p.count(rest, p.switches, &s.Switches)
		case "processes":
			p.forks = p.count(rest, p.forks, &s.Forks)
		default:
			if id, ok := after(name, "cpu"); ok {
				p.parseProcessor(int(number(id)), rest, s)
			}
		}
	}
	p.dropOffline()
}

// parseProcessor parses the line of a processor. A processor that has just come online has no earlier reading.
func (p *processors) parseProcessor(id int, rest []byte, s *Second) {
	var now ticks
	numbers(rest, now[:])
	before, known := p.each[id]
	p.each[id] = now
	p.online = append(p.online, id)
	if known {
		if s.Each == nil {
			s.Each = make([]Processor, 0, len(p.each))
		}
		s.Each = append(s.Each, Processor{id, now.since(before)})
	}
}

func (p *processors) count(rest []byte, before uint64, into *uint64) uint64 {
	w, _ := word(rest)
	now := number(w)
	*into = clockIncrease(now, before)
	return now
}

// dropOffline drops the counters of offline processors, which stop or restart at 0.
func (p *processors) dropOffline() {
	if len(p.online) == len(p.each) {
		return
	}
	still := make(map[int]ticks, len(p.online))
	for _, id := range p.online {
		still[id] = p.each[id]
	}
	p.each = still
}
