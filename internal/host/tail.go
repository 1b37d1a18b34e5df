package host

import (
	"bytes"
	"sync"
)

// TailBuffer keeps the end of what is written to it: enough of a command's output to see why it failed.
type TailBuffer struct {
	mutex sync.Mutex // a command's output and its errors arrive concurrently
	buf   bytes.Buffer
}

// tailBytes is how much of an output is kept.
const tailBytes = 8 << 10

// Write stores p, and drops all but the last few KiB.
func (t *TailBuffer) Write(p []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.buf.Write(p)
	if over := t.buf.Len() - 2*tailBytes; over > 0 {
		t.buf.Next(over + tailBytes)
	}
	return len(p), nil
}

// String returns the end of what was written. If something was dropped, it starts at a line's
// beginning.
func (t *TailBuffer) String() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	b := t.buf.Bytes()
	if len(b) > tailBytes {
		b = b[len(b)-tailBytes:]
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			b = b[i+1:]
		}
	}
	return string(b)
}
