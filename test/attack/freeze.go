package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// freezeProcess puts a process into a new control group and freezes it. In version 1, the process
// then cannot die of SIGKILL. With "again", it freezes the process whenever it is thawed, until
// this program is killed.
func freezeProcess(args []string) error {
	if len(args) == 0 {
		return errors.New("freeze PID [again]")
	}
	group, list, state, frozen := "/sys/fs/cgroup/freezer/ice", "tasks", "freezer.state", "FROZEN"
	if _, err := os.Stat(filepath.Dir(group)); err != nil {
		group, list, state, frozen = "/sys/fs/cgroup/ice", "cgroup.procs", "cgroup.freeze", "1"
	}
	inside := filepath.Join(group, "floe") // frozen as well
	if err := os.MkdirAll(inside, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(inside, list), []byte(args[0]), 0); err != nil {
		return err
	}
	freeze := func() error {
		return errors.Join(os.WriteFile(filepath.Join(inside, state), []byte(frozen), 0),
			os.WriteFile(filepath.Join(group, state), []byte(frozen), 0))
	}
	if err := freeze(); err != nil {
		return err
	}
	fmt.Println("frozen")
	for len(args) > 1 {
		_ = freeze()
		time.Sleep(100 * time.Microsecond)
	}
	return nil
}
