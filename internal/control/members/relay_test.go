package members

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
)

// TestMain lets the test program be a relay, and the call behind it.
func TestMain(m *testing.M) {
	switch dir := os.Getenv("ORRERY_RELAY_TEST"); {
	case dir == "":
		os.Exit(m.Run())
	case len(os.Args) > 1:
		call(dir)
	default:
		runtime.LockOSThread()
		status, err := relay([]string{"call"})
		if err != nil {
			panic(err)
		}
		os.Exit(status)
	}
}

// call counts in a file until it is told to end.
func call(dir string) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGTERM)
	session, _ := unix.Getsid(0)
	fmt.Printf("in session %t, killable %t\n", session == os.Getpid(), host.Killable(os.Stdout))
	_ = os.WriteFile(filepath.Join(dir, "pid"), []byte(strconv.Itoa(os.Getpid())), 0o600)
	for n := 1; ; n++ {
		_ = os.WriteFile(filepath.Join(dir, "count"), []byte(strconv.Itoa(n)), 0o600)
		select {
		case <-ended:
			fmt.Println("the end")
			os.Exit(7)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// A relayed call writes its output to a file.
type relayed struct {
	*testing.T
	cmd *exec.Cmd
	dir string
	pid int // of the call
}

func begin(t *testing.T) *relayed {
	t.Helper()
	r := &relayed{T: t, dir: t.TempDir()}
	out, err := os.Create(filepath.Join(r.dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	r.cmd = exec.Command(os.Args[0])
	r.cmd.Env = append(os.Environ(), "ORRERY_RELAY_TEST="+r.dir)
	r.cmd.Stdout, r.cmd.Stderr = out, out
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	r.eventually(func() bool {
		r.pid, err = strconv.Atoi(r.read("pid"))
		return err == nil
	})
	return r
}

func (r *relayed) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(r.dir, name))
	return string(text)
}

func (r *relayed) eventually(condition func() bool) {
	r.Helper()
	for began := time.Now(); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			r.Fatal("not within a minute")
		}
	}
}

// goesOn fails the test unless the call continues.
func (r *relayed) goesOn() {
	r.Helper()
	before := r.read("count")
	r.eventually(func() bool { now := r.read("count"); return now != before && now != "" })
}

// TestRelay: the call continues if the relay is stopped. Signals that end it are passed on, and its
// output and exit status reach the caller. It has no open file of the caller.
func TestRelay(t *testing.T) {
	r := begin(t)
	for _, stop := range []unix.Signal{unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGSTOP} {
		if err := r.cmd.Process.Signal(stop); err != nil {
			t.Fatal(err)
		}
		r.goesOn()
	}
	if err := errors.Join(r.cmd.Process.Signal(unix.SIGTERM), r.cmd.Process.Signal(unix.SIGCONT)); err != nil {
		t.Fatal(err)
	}
	err := r.cmd.Wait()
	if got := r.read("out"); r.cmd.ProcessState.ExitCode() != 7 || got != "in session true, killable true\nthe end\n" {
		t.Errorf("it ended with %v and printed %q", err, got)
	}
}

// TestRelayKilled: a call does not outlive its relay.
func TestRelayKilled(t *testing.T) {
	r := begin(t)
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = r.cmd.Wait()
	r.eventually(func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}
