package secret

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
)

// count stores the beginning and the size of what is written to it.
type count struct {
	begin bytes.Buffer
	size  int
}

func (c *count) Write(p []byte) (int, error) {
	c.size += len(p)
	c.begin.Write(p[:min(len(p), max(0, 4<<20-c.begin.Len()))])
	return len(p), nil
}

// allocated returns how many bytes do allocates in total, including those that it frees. The result
// does not depend on the load of the machine.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestEndlessLine: a line without an end needs no more memory than a long one, and no part of a
// secret is shown where the line is cut.
func TestEndlessLine(t *testing.T) {
	const value = "hunter22-hunter22"
	k := keyring(t, map[string]string{"password": value})
	long := bytes.Repeat([]byte("y"), 1<<20)
	for shift := range len(value) {
		var out count
		w := k.NewWriter(&out)
		print := func(text string) {
			if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
				t.Fatal(n, err)
			}
		}
		print(strings.Repeat("x", maxLineBytes-shift))
		print(value)
		if shift == 0 {
			taken := allocated(func() {
				for range 1 << 10 {
					if n, err := w.Write(long); n != len(long) || err != nil {
						t.Fatal(n, err)
					}
				}
			})
			if taken > 8<<20 {
				t.Errorf("1 GiB takes %d MiB", taken>>20)
			}
		}
		print(strings.Repeat("y", 100))
		print("\nthe next line, " + value + "\n")
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		text := out.begin.String()
		for part := range len(value) - 3 {
			if strings.Contains(text, value[part:part+4]) {
				t.Fatalf("%d bytes before the cut: a part of the secret is shown", shift)
			}
		}
		if out.size > 2*maxLineBytes ||
			!strings.Contains(text, "bytes of this line left out)\nthe next line, <secret password>\n") {
			t.Errorf("%d bytes came, with the end %q", out.size, text[max(0, len(text)-100):])
		}
	}
}
