package remote_test

import (
	"errors"
	"io"
	"strings"
	"testing/iotest"

	"orrery/internal/image/imported"
)

// receives sends files to be imported: in one piece and in many, one that is something else, and one that cannot be read to its end.
func (p *pair) receives() {
	p.Helper()
	long := strings.Repeat("a line of a file\n", 100_000)
	for _, content := range []string{"", "short", long} {
		must(p, p.far.Receive(p.Context(), imported.DigestOf([]byte(content)), strings.NewReader(content)))
	}
	if err := p.far.Receive(p.Context(), imported.DigestOf([]byte("one")), strings.NewReader(long)); err == nil || !strings.Contains(err.Error(), "has come, and not") {
		p.Errorf("another file: %v", err)
	}
	wrong := errors.New("the disk here is broken")
	if err := p.far.Receive(p.Context(), imported.DigestOf([]byte(long)), io.MultiReader(strings.NewReader(long), iotest.ErrReader(wrong))); !errors.Is(err, wrong) {
		p.Errorf("a file that cannot be read: %v", err)
	}
}
