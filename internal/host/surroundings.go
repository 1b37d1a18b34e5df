package host

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"orrery/internal/text/pattern"
)

// plainWord matches a value of an environment variable that can only be a name.
var plainWord = pattern.New(`^[A-Za-z0-9._+-]{1,64}$`)

// DropInheritedState removes what an unprivileged caller may have passed to this program besides
// arguments and streams: environment, working directory, limits and priority. Programs that it
// starts do not inherit them either.
func DropInheritedState() error {
	kept := map[string]string{"PATH": Path, "HOME": "/root", "LANG": "C.UTF-8"}
	for _, name := range []string{"TERM", "NO_COLOR", "SUDO_UID", "SUDO_GID"} {
		if value := os.Getenv(name); plainWord().MatchString(value) {
			kept[name] = value
		}
	}
	os.Clearenv()
	var all error
	for name, value := range kept {
		all = errors.Join(all, os.Setenv(name, value))
	}
	if err := errors.Join(all, os.Chdir("/")); err != nil {
		return err
	}
	ResetLimits()
	return nil
}

// ResetLimits sets the limits of this program to those of the first process, and its priority to an
// ordinary one, as far as the kernel allows. In a container, root may not raise limits. A run that
// reaches a limit ends like one that was killed, and the next run continues.
func ResetLimits() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("0"), 0)
	for limit := unix.RLIMIT_CPU; limit <= unix.RLIMIT_RTTIME; limit++ {
		var of unix.Rlimit
		if err := unix.Prlimit(1, limit, nil, &of); err == nil {
			_ = unix.Setrlimit(limit, &of)
		}
	}
	threads, _ := os.ReadDir("/proc/self/task")
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			_ = resetScheduling(id)
		}
	}
}
