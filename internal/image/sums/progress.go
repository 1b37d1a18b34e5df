package sums

import "sync"

// Progress counts the bytes of files that are hashed at once, and says how many they are from time to time.
type Progress struct {
	Say   func(bytes int64)
	mutex sync.Mutex
	bytes int64
}

// bytesBetween is after how many bytes Progress says so again: they are hashed in some seconds.
const bytesBetween = 4 << 30

// Add counts more bytes.
func (p *Progress) Add(bytes int64) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.bytes += bytes; p.bytes/bytesBetween > (p.bytes-bytes)/bytesBetween {
		p.Say(p.bytes)
	}
}
