package schedule

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"orrery/internal/host"
)

// systemdRuns is a variable, so that tests can change it.
var systemdRuns = host.SystemdRuns

// beginUnit creates a transient timer, which systemd removes after it has elapsed. Each timer has a
// unique name, so that the command itself may schedule another job of the same name.
func beginUnit(w *Pending, dirs host.Dirs, command []string, after time.Duration) error {
	w.Unit = "orrery-" + w.Name + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	args := []string{
		"systemd-run", "--quiet", "--collect", "--unit=" + w.Unit, fmt.Sprintf("--on-active=%dms", after.Milliseconds()),
		"--timer-property=AccuracySec=100ms", "--description=orrery: " + w.Name,
		"--property=Restart=on-abnormal", "--property=RestartSec=2s", // a command that was killed must run again
	}
	if dir, err := os.Getwd(); err == nil { // the site directory may be a relative path
		args = append(args, "--working-directory="+dir)
	}
	for _, e := range jobEnv(dirs) {
		args = append(args, "--setenv="+e)
	}
	if err := systemctl(append(append(args, "--"), command...)...); err != nil {
		return err
	}
	return w.writeRecord(dirs)
}

// endUnit stops the timer, but not the service that the timer may have started.
func endUnit(unit string) error { return systemctl("systemctl", "stop", unit+".timer") }

// unitWaits reports whether the timer has yet to elapse. A transient timer is gone after that.
func unitWaits(unit string) bool {
	return systemctl("systemctl", "--quiet", "is-active", unit+".timer") == nil &&
		systemctl("systemctl", "--quiet", "is-active", unit+".service") != nil
}

func systemctl(args ...string) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), 30*time.Second, errors.New("systemd does not answer"))
	defer cancel()
	return host.Local{Name: "host"}.Run(ctx, host.Command{Args: args})
}
