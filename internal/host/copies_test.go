package host

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
)

// TestCopies checks that each reader gets the whole stream at its own pace, and that a reader that
// closes its copy does not delay the others.
func TestCopies(t *testing.T) {
	text := strings.Repeat("all of it\n", 100_000)
	copies := Tee(strings.NewReader(text), 4)
	got := make([]bytes.Buffer, len(copies))
	var all sync.WaitGroup
	for i, c := range copies {
		all.Go(func() {
			if i == 0 { // wants one piece only
				_, _ = c.Read(make([]byte, 10))
				c.Close()
				return
			}
			_, _ = io.CopyBuffer(struct{ io.Writer }{&got[i]}, struct{ io.Reader }{c}, make([]byte, 100<<i))
		})
	}
	all.Wait()
	for i := 1; i < len(copies); i++ {
		if got[i].String() != text {
			t.Errorf("copy %d has %d bytes of %d", i, got[i].Len(), len(text))
		}
	}
	broken := errors.New("the disk is broken")
	for _, c := range Tee(io.MultiReader(strings.NewReader("x"), failing{broken}), 1) {
		if text, err := io.ReadAll(c); string(text) != "x" || !errors.Is(err, broken) {
			t.Errorf("%q, %v", text, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
