package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// maxInitBytes is how much all packages together may allocate before main begins. Each run of the
// program pays for it, and so does each helper on a host. Bytes are counted rather than time, so a
// busy machine does not affect the result.
const maxInitBytes = 1536 << 10

func TestStart(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "orrery")
	build := exec.Command("go", "build", "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	run := exec.Command(program, "version")
	run.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("orrery version: %v\n%s", err, out)
	}
	sum, most, largest := 0, 0, ""
	for line := range strings.Lines(string(out)) {
		// init orrery/internal/site/distro @5.5 ms, 0.027 ms clock, 17816 bytes, 116 allocs
		fields := strings.Fields(line)
		if len(fields) < 8 || fields[0] != "init" {
			continue
		}
		bytes, err := strconv.Atoi(fields[7])
		if err != nil {
			t.Fatalf("inittrace says %q", line)
		}
		if sum += bytes; bytes > most {
			most, largest = bytes, fields[1]
		}
	}
	if sum == 0 {
		t.Fatalf("inittrace says nothing:\n%s", out)
	}
	if sum > maxInitBytes {
		t.Errorf("packages allocate %d bytes before main begins, %d are allowed; the most, %d, by %s", sum, maxInitBytes,
			most, largest)
	}
}
