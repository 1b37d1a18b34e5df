package boot

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// shellUnit is a root shell on the machine's serial console, available early in the boot and
// without a password. A user who reaches that console is root on the host, and can enter the
// machine as root by its agent anyway. The shell starts only after Enter is pressed, so that until
// then only a small script is in memory.
const shellUnit = `[Unit]
Description=Shell on the serial console
DefaultDependencies=no
Conflicts=shutdown.target
Before=shutdown.target
StartLimitIntervalSec=0

[Service]
Environment=HOME=/root TERM=vt220
ExecStart=/bin/sh -c 'echo; echo "Press Enter for a shell on $(hostname)."; read -r _ || exit; cd; exec "$(command -v bash || echo sh)" -l'
Restart=always
RestartSec=1
StandardInput=tty
TTYPath=TERMINAL
TTYReset=yes
TTYVHangup=yes
KillMode=process
SendSIGHUP=yes
`

// mountRun mounts the node's /run. Systemd keeps that mount. So what boot writes there is valid for
// this boot only, and is not stored in the root.
func mountRun() error {
	if err := os.MkdirAll("/run", 0o755); err != nil {
		return err
	}
	return os.NewSyscallError("mount", unix.Mount("tmpfs", "/run", "tmpfs",
		unix.MS_NOSUID|unix.MS_NODEV|unix.MS_STRICTATIME, "mode=0755,size=20%"))
}

// unitDir is where systemd finds units for this boot only.
const unitDir = "/run/systemd/system"

// installShell adds a shell on the console as a unit of the node's systemd.
func installShell() error {
	active, err := os.ReadFile("/sys/class/tty/console/active")
	if err != nil {
		return err
	}
	names := strings.Fields(string(active))
	if len(names) == 0 {
		return nil // there is no console
	}
	return writeShell(unitDir, "/dev/"+names[len(names)-1])
}

// writeShell writes the unit, to be started with sysinit.target.
func writeShell(units, terminal string) error {
	const name, wants = "orrery-console.service", "sysinit.target.wants"
	if err := os.MkdirAll(filepath.Join(units, wants), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(units, name), []byte(strings.ReplaceAll(shellUnit, "TERMINAL", terminal)),
		0o644); err != nil {
		return err
	}
	return os.Symlink("../"+name, filepath.Join(units, wants, name))
}
