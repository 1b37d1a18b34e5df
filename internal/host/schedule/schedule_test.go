package schedule

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"orrery/internal/host"
)

// TestMain makes this test program run as a job, or as the caller that schedules one.
func TestMain(m *testing.M) {
	switch os.Getenv("ORRERY_LATER_TEST") {
	case "caller": // schedules a job from a process group that will be killed
		os.Setenv("ORRERY_LATER_TEST", "later")
		dirs := host.Dirs{State: os.Args[1], Run: os.Args[1]}
		if err := Run(Job{Name: "try", After: 500 * time.Millisecond, Args: []string{os.Args[1] + "/done", "a b", "$c"}},
			dirs); err != nil {
			panic(err)
		}
		os.Stdout.WriteString("asked\n")
		time.Sleep(time.Minute)
	case "later":
		// The test that waits for the file must not find it before it has its content.
		err := os.WriteFile(os.Args[1]+".new", []byte(strings.Join(os.Args[2:], "|")), 0o644)
		if err := errors.Join(err, os.Rename(os.Args[1]+".new", os.Args[1])); err != nil {
			panic(err)
		}
	default:
		os.Exit(m.Run())
	}
}

// TestLater checks that a job runs even after its caller's process group was killed and the
// terminal is gone.
func TestLater(t *testing.T) {
	systemd(t, false)
	dir := t.TempDir()
	dirs := host.Dirs{State: dir, Run: dir}
	cmd := exec.Command(os.Args[0], dir)
	cmd.Env = append(os.Environ(), "ORRERY_LATER_TEST=caller")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, err = out.Read(make([]byte, 1))
	err = errors.Join(err, syscall.Kill(-cmd.Process.Pid, syscall.SIGHUP), syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL))
	_ = cmd.Wait()
	if err != nil {
		t.Fatal(err)
	}
	waiting, err := List(dirs)
	if err != nil || len(waiting) != 1 || waiting[0].Name != "try" || time.Until(waiting[0].Due) > time.Second {
		t.Errorf("waiting are %+v (%v)", waiting, err)
	}
	if got := await(t, dir+"/done"); got != "a b|$c" {
		t.Errorf("it ran with %q", got)
	}
	if waiting, err := List(dirs); err != nil || len(waiting) != 0 {
		t.Errorf("still waiting: %+v (%v)", waiting, err)
	}
	if err := Cancel("try", dirs); err != nil {
		t.Error(err)
	}
}

// TestCancelLater checks that a job that was cancelled or replaced does not run.
func TestCancelLater(t *testing.T) {
	systemd(t, false)
	t.Setenv("ORRERY_LATER_TEST", "later")
	dir := t.TempDir()
	dirs := host.Dirs{State: dir, Run: dir}
	later := func(name, file string) {
		t.Helper()
		if err := Run(Job{Name: name, After: 300 * time.Millisecond, Args: []string{filepath.Join(dir, file)}},
			dirs); err != nil {
			t.Fatal(err)
		}
	}
	later("a", "first")
	later("a", "second")
	later("b", "third")
	if waiting, _ := List(dirs); len(waiting) != 2 {
		t.Errorf("waiting are %+v", waiting)
	}
	if err := Cancel("b", dirs); err != nil {
		t.Error(err)
	}
	await(t, dir+"/second")
	time.Sleep(300 * time.Millisecond)
	for _, file := range []string{"first", "third"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
			t.Errorf("the %s ran", file)
		}
	}
	if err := Cancel("never", dirs); err != nil {
		t.Error(err)
	}
	if err := Run(Job{Name: "../x"}, dirs); err == nil {
		t.Error("a path is no name")
	}
}

// TestLaterOther checks that Cancel does not kill a process that has reused the PID of a job.
func TestLaterOther(t *testing.T) {
	systemd(t, false)
	dir := t.TempDir()
	dirs := host.Dirs{State: dir, Run: dir}
	other := exec.Command("sleep", "60")
	other.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	text := `{"name": "x", "pid": ` + strconv.Itoa(other.Process.Pid) + `, "began": "1"}`
	if err := host.WriteFile(host.File{Path: recordPath(dirs, "x"), Content: []byte(text), Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	if waiting, _ := List(dirs); len(waiting) != 0 {
		t.Errorf("waiting are %+v", waiting)
	}
	if err := Cancel("x", dirs); err != nil {
		t.Error(err)
	}
	if startTime(other.Process.Pid) == "" {
		t.Error("another's process was killed")
	}
}

// TestLaterUnit checks that a job is a timer of systemd if systemd runs the host.
func TestLaterUnit(t *testing.T) {
	dir := t.TempDir()
	dirs := host.Dirs{State: dir + "/state", Run: dir + "/run"}
	for _, program := range []string{"systemd-run", "systemctl"} {
		script := "#!/bin/sh\necho \"$0 $*\" >> " + dir + "/log\ncase \"$*\" in *is-active*.service) exit 3;; esac\n"
		if err := os.WriteFile(filepath.Join(dir, program), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("SUDO_USER", "ada")
	systemd(t, true)
	if err := Run(Job{Name: "revert-karoo", After: 10 * time.Minute, Args: []string{"rollback", "--yes"}},
		dirs); err != nil {
		t.Fatal(err)
	}
	waiting, err := List(dirs)
	if err != nil || len(waiting) != 1 || !strings.HasPrefix(waiting[0].Unit, "orrery-revert-karoo-") {
		t.Fatalf("waiting are %+v (%v)", waiting, err)
	}
	if err := Cancel("revert-karoo", dirs); err != nil {
		t.Error(err)
	}
	program, _ := os.Executable()
	here, _ := os.Getwd()
	log, _ := os.ReadFile(dir + "/log")
	for _, want := range []string{
		"systemd-run --quiet --collect --unit=" + waiting[0].Unit + " --on-active=600000ms",
		"--working-directory=" + here, "--setenv=ORRERY_STATE=" + dirs.State, "--setenv=SUDO_USER=ada",
		"-- " + program + " rollback --yes\n",
		"systemctl stop " + waiting[0].Unit + ".timer",
	} {
		if !strings.Contains(string(log), want) {
			t.Errorf("%q is not in\n%s", want, log)
		}
	}
}

func systemd(t *testing.T, runs bool) {
	old := systemdRuns
	systemdRuns = func() bool { return runs }
	t.Cleanup(func() { systemdRuns = old })
}

func await(t *testing.T, path string) string {
	t.Helper()
	for range 600 {
		if text, err := os.ReadFile(path); err == nil {
			return string(text)
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s did not come", path)
	return ""
}

// TestLaterUntold checks a job whose caller was killed before it wrote the record: the job must not
// wait unseen. It also checks that a job that was killed is not listed as waiting.
func TestLaterUntold(t *testing.T) {
	done := filepath.Join(t.TempDir(), "done")
	cmd := exec.Command("/bin/sh", "-c", waitScript, "later", "0", "/nonexistent", "touch", done) // its input ends at once
	if err := cmd.Run(); err == nil {
		t.Error("it went on")
	}
	if _, err := os.Stat(done); err == nil {
		t.Error("it ran")
	}
	if (&Pending{Name: "x", Pid: cmd.Process.Pid}).isWaiting() {
		t.Error("a process that has ended waits")
	}
}
