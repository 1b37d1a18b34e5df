package remote_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"orrery/internal/image/imported"
	"orrery/internal/treesync"
)

// receives sends files to be imported: an empty one, a short and a long one, one with another
// digest, and one that cannot be read.
func (p *pair) receives() {
	p.Helper()
	file := filepath.Join(p.TempDir(), "file")
	send := func(digest string, send func(rw io.ReadWriter) error) error {
		return treesync.Pipe(p.Context(), send, func(rw io.ReadWriter) error {
			return p.far.Layers.Receive(p.Context(), digest, rw)
		})
	}
	sendFile := func(rw io.ReadWriter) error { return imported.Send(p.Context(), file, rw) }
	long := strings.Repeat("a line of a file\n", 100_000)
	for _, content := range []string{"", "short", long} {
		must(p, os.WriteFile(file, []byte(content), 0o600))
		must(p, send(imported.DigestOf([]byte(content)), sendFile))
	}
	if err := send(imported.DigestOf([]byte("one")), sendFile); err == nil ||
		!strings.Contains(err.Error(), "instead of") {
		p.Errorf("another file: %v", err)
	}
	wrong := errors.New("the disk here is broken")
	if err := send(imported.DigestOf([]byte(long)), func(io.ReadWriter) error { return wrong }); !errors.Is(err, wrong) {
		p.Errorf("a file that cannot be read: %v", err)
	}
}
