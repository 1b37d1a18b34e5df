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

// waiter is the process that waits: a shell, which has nothing to lose and becomes the program
// itself. It begins when it is told that it has been put on record, and ends if its caller is no
// more by then: nobody would know of it. When it has waited it is no longer on record, so that
// nobody ends the program half way.
const waiter = `read -r go || exit; sleep "$1" && rm -f -- "$2" && shift 2 && exec "$@" < /dev/null`

// beginProcess starts a process in a session of its own, which neither the terminal nor the end of
// its caller's process group reaches.
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
	args := append([]string{"-c", waiter, "orrery-later-" + w.Name, fmt.Sprintf("%.3f", after.Seconds()),
		laterPath(dirs, w.Name)}, command...)
	cmd := host.Program(context.Background(), "/bin/sh", args...)
	cmd.Env = append(os.Environ(), laterEnv(dirs)...)
	cmd.Stdout, cmd.Stderr = log, log
	hold, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	defer hold.Close()
	if err := cmd.Start(); err != nil {
		return err
	}
	w.Pid, w.Began = cmd.Process.Pid, began(cmd.Process.Pid)
	err = w.keep(dirs)
	if err == nil {
		_, err = io.WriteString(hold, "go\n") // which fails if it was killed meanwhile
	}
	go cmd.Wait() //nolint:errcheck // it most often outlives us; if not, it is buried here
	return err
}

// laterEnv keeps the host's directories, and who has called.
func laterEnv(dirs host.Dirs) []string {
	env := []string{"ORRERY_STATE=" + dirs.State, "ORRERY_RUN=" + dirs.Run}
	if name := os.Getenv("SUDO_USER"); name != "" {
		env = append(env, "SUDO_USER="+name)
	}
	return env
}

// endProcess ends the process that waits, with the sleep that it has started: it leads a process group.
func endProcess(w *Pending) error {
	if err := syscall.Kill(-w.Pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
