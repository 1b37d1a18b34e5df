package sums

import "sync"

// Progress counts the bytes of files that are being hashed, and reports the sum from time to time.
type Progress struct {
	Say   func(bytes int64)
	mutex sync.Mutex
	bytes int64
}

// bytesBetween is how many bytes are hashed between two reports, which takes some seconds.
const bytesBetween = 4 << 30

// Add adds to the count.
func (p *Progress) Add(bytes int64) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.bytes += bytes; p.bytes/bytesBetween > (p.bytes-bytes)/bytesBetween {
		p.Say(p.bytes)
	}
}
