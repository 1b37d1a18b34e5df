package host

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// endless is a place where every command prints without end. It measures the memory of this
// process.
type endless struct {
	Local
	line   string
	before runtime.MemStats
}

func (e *endless) Run(ctx context.Context, c Command) error {
	runtime.ReadMemStats(&e.before)
	return e.Local.Run(ctx, Command{Args: []string{"sh", "-c", "yes '" + e.line + "' | head -c 1073741824"},
		Stdout: c.Stdout, Stderr: c.Stderr})
}

// taken returns how much memory has been allocated since the start, even if it was freed again. So
// the load of the machine has no influence.
func (e *endless) taken() uint64 {
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return now.TotalAlloc - e.before.TotalAlloc
}

// TestOutputIsBounded checks that a command that prints 1 GiB is killed, and uses no more memory
// than the caller allows.
//
// Promise (What others print and answer): A node's output fills neither the host's memory nor, by
// logs, its disk. With host.TestLog, cli/nodeverb.TestExecEndlessLine, role.TestSaverIsBounded,
// role.TestAwaitBootIsBounded.
func TestOutputIsBounded(t *testing.T) {
	e := &endless{line: "x"}
	began := time.Now()
	_, err := Output(t.Context(), e, Command{}, 1<<20)
	if err == nil || !strings.Contains(err.Error(), "it printed more than 1 MiB") {
		t.Errorf("error %v", err)
	}
	if taken := e.taken(); taken > 32<<20 {
		t.Errorf("it took %d MiB of memory", taken>>20)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}

func TestOutput(t *testing.T) {
	out, err := Output(t.Context(), Local{}, Command{Args: []string{"echo", "data"}}, 5)
	if string(out) != "data\n" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
	if _, err = Output(t.Context(), Local{}, Command{Args: []string{"echo", "data"}}, 4); err == nil {
		t.Error("more than was allowed is no error")
	}
}

func TestLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "node.log")
	for _, text := range []string{"first\n", "second\n"} {
		l, err := OpenLog(path, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(l, text)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if text, _ := os.ReadFile(path); string(text) != "first\nsecond\n" {
		t.Errorf("the log holds %q", text)
	}
	l, err := OpenLog(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	block := strings.Repeat("0123456789abcde\n", 1<<16)
	for range 48 {
		if _, err := io.WriteString(l, block); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprint(l, "the reason\n")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(path)
	if len(text) > maxLogBytes+64<<10 || !strings.Contains(string(text), "bytes are left out …") ||
		!strings.HasSuffix(string(text), "the reason\n") {
		t.Errorf("the log has %d bytes and ends with %q", len(text), text[max(0, len(text)-100):])
	}
	if l, err = OpenLog(path, 0o600); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Errorf("a log that has become long goes on: %v", err)
	}
}
