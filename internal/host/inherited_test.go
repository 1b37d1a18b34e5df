package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// TestOwnThread checks that attributes set by a caller are reset for the thread and its children.
func TestOwnThread(t *testing.T) {
	err := OnLockedThread(func() error {
		const uname26 = 0x0020000
		if err := unix.SchedSetAttr(0, &unix.SchedAttr{Policy: unix.SCHED_IDLE}, 0); err != nil {
			return err
		}
		if _, _, errno := unix.Syscall(unix.SYS_IOPRIO_SET, ofProcess, 0, 3<<13); errno != 0 { // IOPRIO_CLASS_IDLE
			return errno
		}
		if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1e15, 0, 0, 0); err != nil {
			return err
		}
		if _, _, errno := unix.Syscall(unix.SYS_PERSONALITY, uname26, 0, 0); errno != 0 {
			return errno
		}
		if err := ResetThread(); err != nil {
			return err
		}
		out, err := exec.Command("/bin/sh", "-c",
			`chrt -p $$ | head -1; ionice -p $$; cat /proc/self/timerslack_ns; uname -r`).CombinedOutput()
		if text := string(out); err == nil && (!strings.Contains(text, "SCHED_OTHER") || strings.Contains(text, "idle") ||
			!strings.Contains(text, "\n50000\n") || strings.Contains(text, "\n2.6.")) {
			t.Errorf("a program that it starts has\n%s", text)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestKillable checks which streams may block a killed process: only files that are not a terminal,
// pipe, socket or /dev/null.
func TestKillable(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	zero, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	for f, want := range map[*os.File]bool{file: false, null: true, zero: false, theirs: true, writer: true,
		reader: true} {
		if Killable(f) != want {
			t.Errorf("%s: %v", f.Name(), !want)
		}
	}
	for _, f := range []*os.File{file, null, zero, ours, theirs, reader, writer} {
		f.Close()
	}
	if Killable(file) {
		t.Error("a file that is closed")
	}
}
