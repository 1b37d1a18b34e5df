package probe

// sector is the kernel's unit for all devices, in bytes.
const sector = 512

// disks reads /proc/diskstats. A line has major, minor and name, then up to 17 numbers
// (iostats.rst): 0 reads, 1 merged, 2 sectors, 3 ms, 4 writes, 5 merged, 6 sectors, 7 ms, 8 in
// progress, 9 ms busy, 10 ms queued, 11 to 14 discards, 15 flushes, 16 ms. The milliseconds have 32
// bits.
type disks struct {
	file  *file
	table table[[17]uint64]
}

func (d *disks) sample(s *Second) {
	text := d.file.read()
	d.table.begin()
	count := 0
	for ; len(text) > 0; count++ {
		var l []byte
		l, text = line(text)
		_, l = word(l)
		_, l = word(l)
		name, l := word(l)
		var now [17]uint64
		numbers(l, now[:])
		it, known := d.table.find(name)
		before := it.before
		it.before = now
		before[8], now[8] = 0, 0 // the number of requests in progress is not a counter
		if known && now != before {
			s.Disks = append(s.Disks, Disk{
				Name: it.name, Reads: increase(now[0], before[0]), ReadBytes: sector * increase(now[2], before[2]),
				ReadTime: ms(now[3], before[3]),
				Writes:   increase(now[4], before[4]), WrittenBytes: sector * increase(now[6], before[6]),
				WriteTime: ms(now[7], before[7]),
				Flushes:   increase(now[15], before[15]), FlushTime: ms(now[16], before[16]), Busy: ms(now[9], before[9]),
				Queued: ms(now[10], before[10]),
			})
		}
	}
	d.table.end(count)
}

func ms(now, before uint64) float64 { return float64(increase32(now, before)) / 1000 }
