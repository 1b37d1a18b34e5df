package boot

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Run is the work of the machine's first process. It never returns: either it executes the node's
// own init, or it prints the reason on the console and switches the machine off.
func Run() {
	defer func() {
		if r := recover(); r != nil {
			fail(fmt.Errorf("internal error: %v", r))
		}
	}()
	fail(bringUp())
}

// bringUp prepares the machine and executes the node's own init. It returns only on failure.
func bringUp() error {
	for _, m := range []struct{ kind, at string }{{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}} {
		if err := unix.Mount(m.kind, m.at, m.kind, unix.MS_NOSUID, ""); err != nil {
			return fmt.Errorf("%s cannot be mounted: %w", m.at, err)
		}
	}
	line, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return err
	}
	c, err := Decode(string(line))
	if err != nil {
		return err
	}
	by, err := shareOf(c.Root)
	if err != nil {
		return err
	}
	if err := loadModules(by.kind, c.Disk != ""); err != nil {
		return err
	}
	if err := waitConnected(); err != nil {
		return err
	}
	if err := by.mountRoot(); err != nil {
		return err
	}
	if c.Disk != "" {
		if err := mountStack(c.Disk); err != nil {
			return err
		}
	}
	for _, m := range c.Mounts {
		if err := by.mount(m); err != nil {
			return err
		}
	}
	if c.Told {
		if c.NICs, err = readNICs("/" + newRoot); err != nil {
			return err
		}
	}
	if err := c.joinNetwork(); err != nil {
		return err
	}
	if c.Hostname != "" {
		if err := unix.Sethostname([]byte(c.Hostname)); err != nil {
			return fmt.Errorf("the host name %q cannot be set: %w", c.Hostname, err)
		}
	}
	if err := switchRoot(); err != nil {
		return err
	}
	if err := mountRun(); err != nil {
		return fmt.Errorf("/run cannot be mounted: %w", err)
	}
	if err := nameDrives("/", "/run"); err != nil {
		return fmt.Errorf("the disks cannot be named: %w", err)
	}
	if err := installShell(); err != nil {
		logf("the console has no shell: %v", err)
	}
	if err := writeConditions(unitDir); err != nil {
		logf("the boot takes longer: %v", err)
	}
	if err := startAgent(); err != nil {
		return err
	}
	return execInit()
}

// logf prints a line on the console.
func logf(format string, args ...any) {
	fmt.Printf("orrery-guest: %s\n", strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " "))
}

// fail prints why the machine cannot boot, and switches it off.
func fail(err error) {
	unix.Kill(-1, unix.SIGKILL) //nolint:errcheck // the agent's complaints about devices that go would follow the reason, and hide it
	logf("%v", err)
	const drain = 1
	unix.IoctlSetInt(1, unix.TCSBRK, drain) //nolint:errcheck // the console may be none that can be waited for
	unix.Sync()
	unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF) //nolint:errcheck // what would be done about it?
	select {}
}

var environ = []string{"HOME=/", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=linux"}

// execInit executes the node's own init.
func execInit() error {
	for _, path := range []string{"/sbin/init", "/usr/lib/systemd/systemd", "/lib/systemd/systemd"} {
		if err := unix.Exec(path, []string{path}, environ); !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("%s cannot be run: %w", path, err)
		}
	}
	return errors.New("the node has no /sbin/init")
}
