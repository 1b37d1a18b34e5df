package nodes

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

// TestKept: a log is shown completely, with the name of its file. A log that cannot be read is an
// error, and not an empty log.
func TestKept(t *testing.T) {
	broken := errors.New("disk failed")
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		log  io.Reader
		err  error
		want string
		fail error
	}{
		"a stream":         {log: strings.NewReader("one\ntwo\n"), want: "==> node web\none\ntwo\n"},
		"a file":           {log: file, want: "==> node web (" + path + ")\nline\n"},
		"none":             {err: fs.ErrNotExist, want: "==> node web: no output\n"},
		"it does not open": {err: broken, fail: broken},
		"it breaks off": {log: io.MultiReader(strings.NewReader("one\n"), iotest.ErrReader(broken)),
			want: "==> node web\none\n", fail: broken},
	} {
		var out strings.Builder
		log, ok := c.log.(io.ReadCloser)
		if !ok && c.log != nil {
			log = io.NopCloser(c.log)
		}
		if err := printLog(&out, log, c.err, "node web", true); !errors.Is(err, c.fail) || out.String() != c.want {
			t.Errorf("%s: %q, %v", what, out.String(), err)
		}
	}
	if err := file.Close(); !errors.Is(err, os.ErrClosed) {
		t.Error("the file is still open")
	}
}
