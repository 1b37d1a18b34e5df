package host

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestLines(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"\n", []string{"\n"}},
		{"one\ntwo\n\nthree", []string{"one\n", "two\n", "\n", "three\n"}},
		{"12345678\n", []string{"12345678\n"}},
		{"12345678", []string{"12345678\n"}},
		{"123456789\n", []string{"12345678" + cutMark, "9\n"}},
		{strings.Repeat("12345678", 3) + "\nx", []string{"12345678" + cutMark, "12345678" + cutMark, "12345678\n", "x\n"}},
	} {
		for size := 1; size <= len(c.text)+1; size++ {
			var got []string
			l := NewLineWriter(8, func(line []byte) error { got = append(got, string(line)); return nil })
			for rest := c.text; rest != ""; {
				n := min(size, len(rest))
				if done, err := fmt.Fprint(l, rest[:n]); err != nil || done != n {
					t.Fatal(done, err)
				}
				rest = rest[n:]
			}
			if err := l.Flush(); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q in pieces of %d: %q, want %q", c.text, size, got, c.want)
			}
			if cap(l.begun) > 256 {
				t.Errorf("it holds %d bytes", cap(l.begun))
			}
		}
	}
}
