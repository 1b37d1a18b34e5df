package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExecOutlivesThreads checks that the end of a thread of this program does not kill a command.
func TestExecOutlivesThreads(t *testing.T) {
	ended := make(chan error)
	for range 8 {
		go func() { ended <- Local{}.Run(context.Background(), Command{Args: []string{"sleep", "0.3"}}) }()
	}
	for range 8 {
		for range 64 {
			done := make(chan bool)
			GoOnLockedThread(func() { close(done) })
			<-done
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestFeederHandsOver checks that a command gets no open directory or device as its input.
func TestFeederHandsOver(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err1 := os.Open(filepath.Join(dir, "file"))
	directory, err2 := os.Open(dir)
	device, err3 := os.Open("/dev/zero")
	pipe, other, err4 := os.Pipe()
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	for _, f := range []*os.File{file, directory, device, pipe, other} {
		defer f.Close()
	}
	for f, want := range map[*os.File]bool{file: true, pipe: true, directory: false, device: false} {
		if isFileOrPipe(f) != want {
			t.Errorf("%s is handed over: %v", f.Name(), !want)
		}
	}
	// A node must not be able to "cd" into an open directory.
	out, err := Output(t.Context(), Local{Name: "host"},
		Command{Args: []string{"sh", "-c", "ls /proc/self/fd/0/ 2>&1 || :"}, Stdin: directory}, 1<<10)
	if strings.Contains(string(out), "file") {
		t.Errorf("the command has gone into the directory: %s (%v)", out, err)
	}
}
