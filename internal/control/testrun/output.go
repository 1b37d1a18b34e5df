package testrun

import (
	"fmt"
	"strings"
	"sync"
)

// maxKeptBytes is how many bytes of an output are kept at its beginning, and again at its end. Readers of
// reports have limits, too.
const maxKeptBytes = 256 << 10

// An output stores what a command prints.
type output struct {
	mu    sync.Mutex
	begin strings.Builder
	end   []byte
	lost  int
}

// Write stores p, or only the beginning and the end of long outputs.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(p)
	room := min(n, maxKeptBytes-o.begin.Len())
	o.begin.Write(p[:room])
	o.end = append(o.end, p[room:]...)
	if over := len(o.end) - maxKeptBytes; over > maxKeptBytes { // not at each write
		o.lost += over
		o.end = append(o.end[:0], o.end[over:]...)
	}
	return n, nil
}

// String returns the stored output.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if over := len(o.end) - maxKeptBytes; over > 0 {
		o.lost += over
		o.end = append(o.end[:0], o.end[over:]...)
	}
	if o.lost == 0 {
		return o.begin.String() + string(o.end)
	}
	return fmt.Sprintf("%s\n… %d bytes are left out here …\n%s", o.begin.String(), o.lost, o.end)
}
