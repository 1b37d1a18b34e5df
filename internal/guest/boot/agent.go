package boot

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// startAgent starts the agent's keeper in the root of the node. A process whose name begins with
// "@" comes from the initramfs, and the node's init does not kill it until the machine is switched
// off (https://systemd.io/ROOT_STORAGE_DAEMONS).
func startAgent() error {
	back, err := enterCgroup()
	if err != nil {
		logf("the agent has no control group of its own: %v", err)
	}
	p, err := startProcess("keep")
	if err == nil {
		err = p.Release()
	}
	if back != nil {
		back()
	}
	if err != nil {
		return fmt.Errorf("the agent cannot be started: %w", err)
	}
	return nil
}

func startProcess(word string) (*os.Process, error) {
	return os.StartProcess("/proc/self/exe", []string{"@orrery-guest", word}, &os.ProcAttr{
		Dir: "/", Env: environ, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
}

// agentCgroup is the control group of the agent and of all commands that it runs. In the parent
// group, the node's systemd would put them into init.scope. It would then kill the agent when the
// kernel kills one of its commands because memory is short. It does so with scopes and, before
// version 253, ignores OOMPolicy.
const agentCgroup = "orrery-guest"

// enterCgroup moves this process into the agent's group, and returns a function that moves it back.
// The hierarchy is the kernel's, so it does not matter where the node's init mounts it later.
func enterCgroup() (back func(), err error) {
	const at = "/run/orrery-cgroup"
	if err := os.Mkdir(at, 0o700); err != nil {
		return nil, err
	}
	if err := unix.Mount("cgroup2", at, "cgroup2", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return nil, fmt.Errorf("cgroup2 cannot be mounted: %w", err)
	}
	leave := func() {
		_ = unix.Unmount(at, unix.MNT_DETACH)
		_ = os.Remove(at)
	}
	move := func(group string) error {
		return os.WriteFile(filepath.Join(at, group, "cgroup.procs"), []byte("0"), 0)
	}
	err = os.Mkdir(filepath.Join(at, agentCgroup), 0o755)
	if err == nil {
		err = move(agentCgroup)
	}
	if err != nil {
		leave()
		return nil, err
	}
	return func() {
		if err := move("."); err != nil {
			logf("init stays in the agent's control group: %v", err)
		}
		leave()
	}, nil
}

// agentRestartDelay is the time between the end of the agent and its restart.
const agentRestartDelay = time.Second

// SuperviseAgent starts the agent, and restarts it whenever it has ended. When memory is short, the kernel
// kills other processes.
func SuperviseAgent() {
	if err := setOOMScore("-1000"); err != nil {
		logf("the agent's supervisor may be killed when memory is short: %v", err)
	}
	for {
		p, err := startProcess("agent")
		if err == nil {
			_, err = p.Wait()
		}
		if err != nil {
			logf("the agent does not run: %v", err)
		}
		time.Sleep(agentRestartDelay)
	}
}

// AllowOOMKill allows the kernel to kill this process and its children when memory is short, like any
// other process.
func AllowOOMKill() error { return setOOMScore("0") }

func setOOMScore(score string) error {
	return os.WriteFile("/proc/self/oom_score_adj", []byte(score), 0)
}
