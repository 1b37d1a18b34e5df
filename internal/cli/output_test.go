package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestOutputIsLost: if the output of a verb cannot be written, that is reported, and the exit
// status is not 0.
func TestOutputIsLost(t *testing.T) {
	dir := t.TempDir()
	mustDo(t, os.WriteFile(dir+"/site.toml",
		[]byte("site.name = \"s\"\nimage.debian.suite = \"bookworm\"\nnode.one.id = 1\n"), 0o600))
	for _, line := range []string{
		"version", "version --json", "help", "query --help", "completion bash", "-C " + dir + " query",
		"-C " + dir + " query --json",
		"-C " + dir + " check", "-C " + dir + " inventory", "-C " + dir + " ssh-config",
	} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		mustDo(t, err)
		var errs bytes.Buffer
		if status := Run(strings.Fields(line), nil, nil, full, &errs); status != 4 ||
			strings.Count(errs.String(), "not all of the output could be written") != 1 {
			t.Errorf("orrery %s: status %d, %q", line, status, errs.String())
		}
		full.Close()
	}
}
