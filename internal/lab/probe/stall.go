package probe

import (
	"bytes"
	"path/filepath"
)

// pressure reads a file of /proc/pressure, whose lines end in total=, in microseconds.
type pressure struct {
	file       *file
	some, full uint64
	counted    bool
}

func (p *pressure) sample(into *Stall) {
	text := p.file.read()
	known := p.counted
	p.counted = len(text) > 0
	for len(text) > 0 {
		var l []byte
		l, text = line(text)
		at := bytes.LastIndex(l, []byte("total="))
		if at < 0 {
			continue
		}
		now := number(l[at+len("total="):])
		before, stall := &p.some, &into.Some
		if _, ok := after(l, "full"); ok {
			before, stall = &p.full, &into.Full
		}
		if known {
			*stall = float64(increase(now, *before)) / 1e6
		}
		*before = now
	}
}

// stalls reads all three files of /proc/pressure.
type stalls struct{ cpu, io, memory pressure }

func (p *stalls) sample(s *Second) {
	p.cpu.sample(&s.Stalls.CPU)
	p.io.sample(&s.Stalls.IO)
	p.memory.sample(&s.Stalls.Memory)
}

// swap reads /proc/vmstat up to the two relevant lines.
type swap struct {
	file    *file
	in, out uint64
	counted bool
}

func (w *swap) sample(s *Second) {
	text := w.file.read()
	known := w.counted
	w.counted = len(text) > 0
	in, out := swapCounter(text, "\npswpin "), swapCounter(text, "\npswpout ")
	if known {
		s.Swap = Swap{increase(in, w.in), increase(out, w.out)}
	}
	w.in, w.out = in, out
}

func swapCounter(text []byte, name string) uint64 {
	at := bytes.Index(text, []byte(name))
	if at < 0 {
		return 0
	}
	return number(text[at+len(name):])
}

// load reads /proc/loadavg: three means, running/tasks, and the last process.
type load struct{ file *file }

func (o *load) sample(s *Second) {
	mean, rest := word(o.file.read())
	_, rest = word(rest)
	_, rest = word(rest)
	tasks, _ := word(rest)
	running, all, _ := bytes.Cut(tasks, []byte("/"))
	s.Load = Load{decimal(mean), number(running), number(all)}
}

// throttles reads how often each processor was throttled because of its temperature. Only some
// machines report it (the kernel's Documentation/ABI/testing/ sysfs-devices-system-cpu,
// thermal_throttle).
type throttles struct {
	files  []*file
	before []uint64
	round  int
}

func findThrottles(root string) *throttles {
	paths, _ := filepath.Glob(filepath.Join(root, "sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/core_throttle_count"))
	t := &throttles{before: make([]uint64, len(paths))}
	for _, path := range paths {
		t.files = append(t.files, newFile(path))
	}
	return t
}

func (t *throttles) sample(s *Second) {
	for i, f := range t.files {
		text := f.read()
		if text == nil { // offline
			continue
		}
		now := number(text)
		if t.round > 0 {
			s.Throttled += clockIncrease(now, t.before[i])
		}
		t.before[i] = now
	}
	t.round++
}
