package probe

import "bytes"

// links reads /proc/net/dev. After two header lines, each interface has a line with eight numbers
// for received and eight for sent data.
type links struct {
	file  *file
	table table[[16]uint64]
}

func (n *links) sample(s *Second) {
	text := n.file.read()
	_, text = line(text)
	_, text = line(text)
	n.table.begin()
	count := 0
	for len(text) > 0 {
		var l []byte
		l, text = line(text)
		// A name may contain colons (old aliases), but numbers do not, so the last colon ends it.
		colon := bytes.LastIndexByte(l, ':')
		if colon < 0 {
			continue
		}
		name, _ := word(l[:colon])
		var now [16]uint64
		numbers(l[colon+1:], now[:])
		count++
		it, known := n.table.find(name)
		if known && now != it.before {
			s.Net = append(s.Net, Link{it.name, traffic(now[:8], it.before[:8]), traffic(now[8:], it.before[8:])})
		}
		it.before = now
	}
	n.table.end(count)
}

func traffic(now, before []uint64) Traffic {
	return Traffic{
		Bytes: increase(now[0], before[0]), Packets: increase(now[1], before[1]), Errors: increase(now[2], before[2]),
		Dropped: increase(now[3], before[3]), FIFO: increase(now[4], before[4]),
	}
}

// softnet reads /proc/net/softnet_stat. It has a line of 32-bit hexadecimal numbers for each online
// processor (softnet_seq_show in the kernel's net/core/net-procfs.c). The thirteenth is the number
// of the processor. Kernels before 5.10 do not have it.
type softnet struct {
	file  *file
	table table[[13]uint64]
	name  []byte
}

func (n *softnet) sample(s *Second) {
	text := n.file.read()
	n.table.begin()
	count := 0
	for ; len(text) > 0; count++ {
		var l []byte
		l, text = line(text)
		var now [13]uint64
		now[12] = uint64(count)
		for i := range now {
			var w []byte
			if w, l = word(l); len(w) == 0 {
				break
			}
			now[i] = hexadecimal(w)
		}
		n.name = append(n.name[:0], byte(now[12]), byte(now[12]>>8))
		it, known := n.table.find(n.name)
		if known {
			before := &it.before
			s.Softnet.Processed += increase32(now[0], before[0])
			s.Softnet.Dropped += increase32(now[1], before[1])
			s.Softnet.Squeezed += increase32(now[2], before[2])
			s.Softnet.Steered += increase32(now[9], before[9])
			s.Softnet.Limited += increase32(now[10], before[10])
		}
		it.before = now
	}
	n.table.end(count)
}
