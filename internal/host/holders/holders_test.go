package holders

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain makes this program hold a lock in a child process.
func TestMain(m *testing.M) {
	if path := os.Getenv("ORRERY_HOLDERS_TEST"); path != "" {
		f, err := os.Open(path)
		if err == nil {
			err = unix.Flock(int(f.Fd()), unix.LOCK_SH)
		}
		fmt.Println("held", err)
		time.Sleep(time.Minute)
		return
	}
	os.Exit(m.Run())
}

// TestOf checks that Of finds the process that holds a lock, with its user and command. It must not
// find a process that only has the file open, or that waits for the lock.
func TestOf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if all := Of(f); len(all) != 0 {
		t.Errorf("of a file without a lock: %v", all)
	}
	holder := exec.Command(os.Args[0], "switch", "--release", "7\n\x1b[2J")
	holder.Env = append(os.Environ(), "ORRERY_HOLDERS_TEST="+path, "SUDO_USER=ada")
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Process.Kill(); _ = holder.Wait() }()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held <nil>\n" {
		t.Fatal(line, err)
	}
	all := Of(f)
	if len(all) != 1 || all[0].Pid != holder.Process.Pid || time.Since(all[0].Began) > 30*time.Second {
		t.Fatalf("holders are %+v, not process %d", all, holder.Process.Pid)
	}
	if words := Describe(all); !strings.HasPrefix(words, `ada runs "holders.test switch --release 7`) ||
		strings.ContainsAny(words, "\n\x1b") ||
		!strings.Contains(words, fmt.Sprintf("(process %d) since ", holder.Process.Pid)) {
		t.Errorf("it is told as %q", words)
	}
}

// TestLockers checks that lockers finds a file whose device has another number in the kernel's
// list, and ignores other files and other kinds of locks.
func TestLockers(t *testing.T) {
	at := table(t.TempDir())
	list := func(lines ...string) {
		if err := os.WriteFile(filepath.Join(string(at), "locks"), []byte(strings.Join(lines, "\n")+"\n"),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	st := &syscall.Stat_t{Dev: unix.Mkdev(0xfe, 1), Ino: 77}
	list(
		"1: FLOCK  ADVISORY  WRITE 11 fe:01:77 0 EOF", "2: FLOCK  ADVISORY  READ 12 fe:01:77 0 EOF",
		"2: -> FLOCK  ADVISORY  WRITE 13 fe:01:77 0 EOF",
		"3: POSIX  ADVISORY  WRITE 14 fe:01:77 0 EOF", "4: FLOCK  ADVISORY  WRITE 15 fe:01:770 0 EOF",
		"5: FLOCK  ADVISORY  WRITE 16 00:2c:77 0 EOF",
		"6: FLOCK  ADVISORY  WRITE 11 fe:01:77 0 EOF", "7: FLOCK  ADVISORY  WRITE -1 fe:01:77 0 EOF", "8: FLOCK", "",
	)
	if got := fmt.Sprint(at.lockers(st)); got != "[11 12]" {
		t.Errorf("holders are %s", got)
	}
	list("5: FLOCK  ADVISORY  WRITE 16 00:2c:77 0 EOF")
	if got := fmt.Sprint(at.lockers(st)); got != "[16]" {
		t.Errorf("with another device number, holders are %s", got)
	}
	if words := Describe([]Process{at.process(16)}); words != "a program started by process 16, which has ended" {
		t.Errorf("one that has ended is told as %q", words)
	}
	if words := Describe(nil); !strings.Contains(words, "is not visible") {
		t.Errorf("nobody is told as %q", words)
	}
	if words := Describe(make([]Process, 5)); !strings.HasSuffix(words, ", 2 more") {
		t.Errorf("many are told as %q", words)
	}
}
