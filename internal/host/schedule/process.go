package schedule

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"orrery/internal/host"
)

// waitScript is the script of the process that waits: a shell that then executes the program. It starts
// to wait only after its record has been written. If its caller ends before that, it ends too,
// because no run could find it. After the wait it removes its record, so that Cancel does not kill
// the program halfway.
const waitScript = `read -r go || exit; sleep "$1" && rm -f -- "$2" && shift 2 && exec "$@" < /dev/null`

// beginProcess starts a process in a session of its own. Neither the terminal nor the end of its
// caller's process group affects it.
func beginProcess(w *Pending, dirs host.Dirs, command []string, after time.Duration) error {
	path := filepath.Join(dirs.State, "log", "later-"+w.Name+".log")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := append([]string{"-c", waitScript, "orrery-later-" + w.Name, fmt.Sprintf("%.3f", after.Seconds()),
		recordPath(dirs, w.Name)}, command...)
	cmd := host.Program(context.Background(), "/bin/sh", args...)
	cmd.Env = append(os.Environ(), jobEnv(dirs)...)
	cmd.Stdout, cmd.Stderr = log, log
	hold, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	defer hold.Close()
	if err := cmd.Start(); err != nil {
		return err
	}
	w.Pid, w.Began = cmd.Process.Pid, startTime(cmd.Process.Pid)
	err = w.writeRecord(dirs)
	if err == nil {
		_, err = io.WriteString(hold, "go\n") // an error: it was killed in the meantime
	}
	go cmd.Wait() //nolint:errcheck // it most often outlives us; if not, it is buried here
	return err
}

// jobEnv returns the variables for the host's directories and for the caller's name.
func jobEnv(dirs host.Dirs) []string {
	env := []string{"ORRERY_STATE=" + dirs.State, "ORRERY_RUN=" + dirs.Run}
	if name := os.Getenv("SUDO_USER"); name != "" {
		env = append(env, "SUDO_USER="+name)
	}
	return env
}

// endProcess kills the process that waits, with its sleep: it leads a process group.
func endProcess(w *Pending) error {
	if err := syscall.Kill(-w.Pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
