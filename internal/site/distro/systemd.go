package distro

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/tree"
)

// systemd is systemd(1), controlled by systemctl(1).
var systemd = &Services{
	Name:  "systemd",
	Init:  []string{"usr/lib/systemd/systemd", "lib/systemd/systemd"},
	Users: []string{"sh", "-c", "if command -v systemd-sysusers >/dev/null; then exec systemd-sysusers; fi"},

	Awaited: []string{"systemctl", "is-system-running", "--wait"},
	Partly:  "degraded",
	Deaf:    []string{"", "offline", "unknown"}, // the last if it did not answer systemctl in time
	Broken:  []string{"systemctl", "list-units", "--failed", "--plain", "--no-legend"},
	Pending: []string{"systemctl", "list-jobs", "--no-legend"},
	OnBoot:  []string{"/bin/sh", "-c", `systemctl --root=/ enable "$@" 2>&1`, "services"},
	NotOn:   []string{"/bin/sh", "-c", `for s; do systemctl --root=/ disable "$s" 2>&1 || true; done`, "services"},
	Start:   []string{"systemctl", "start"},
	Stop:    []string{"systemctl", "stop"},
	Restart: []string{"systemctl", "restart"},
	Enable:  []string{"systemctl", "enable", "--quiet"},
	Begin:   []string{"systemctl", "enable", "--now", "--quiet"},
	End:     []string{"systemctl", "disable", "--now", "--quiet"},
	// Enabling also reloads systemd, so that it sees unit files that have just been written.
	Renew: []string{"/bin/sh", "-c", "systemctl enable --quiet \"$@\" && systemctl restart \"$@\" && exit 0\n" +
		`code=$?; for s; do systemctl is-active --quiet "$s" || systemctl status --no-pager --lines=15 "$s"; done; exit $code`,
		"services"},
	Unmask:  []string{"systemctl", "unmask", "--quiet"},
	Forgive: []string{"systemctl", "reset-failed", "--quiet"},
	Active:  []string{"systemctl", "is-active", "--"},
	// A service that is being restarted is "activating", however often it fails.
	Failed:  []string{"systemctl", "is-failed", "--"},
	GivenUp: "failed",
	Show:    []string{"systemctl", "show", "--property=" + strings.Join(properties, ","), "--"},
	LastSaid: func(service string) []string {
		return []string{"journalctl", "--quiet", "--no-pager", "--output=cat", "--lines=10", "--unit=" + service}
	},

	Conditions: func(said string) []UnitState {
		var all []UnitState
		for _, u := range parseUnits(said) {
			all = append(all, u.unitState())
		}
		return all
	},
	Launches: func(said string) []StartInfo {
		var all []StartInfo
		for _, u := range parseUnits(said) {
			all = append(all, u.startInfo())
		}
		return all
	},
	Disable: disable,
	StartsWith: func(service string) File {
		return File{Path: unitsDir + "/multi-user.target.wants/" + service, Text: "/lib/systemd/system/" + service,
			Link: true}
	},
	Fittings: fittings(),
}

// notInContainers are units that systemd does not start in a container. A container uses the host's
// kernel, devices and clock, so these units fail or waste time there. They do start in a virtual
// machine from the same image.
var notInContainers = []string{
	// Kernel file systems of the host.
	"sys-kernel-debug.mount", "sys-kernel-tracing.mount", "sys-kernel-config.mount", "sys-fs-fuse-connections.mount",
	"dev-hugepages.mount", "dev-mqueue.mount", "proc-sys-fs-binfmt_misc.automount", "systemd-binfmt.service",
	// Kernel modules, devices and firmware.
	"systemd-modules-load.service", "modprobe@.service", "kmod-static-nodes.service", "systemd-hwdb-update.service",
	"systemd-udevd.service", "systemd-udev-trigger.service", "systemd-udevd-control.socket", "systemd-udevd-kernel.socket",
	"systemd-tmpfiles-setup-dev.service", "systemd-tmpfiles-setup-dev-early.service",
	"systemd-pcrphase-sysinit.service", "systemd-pcrphase.service", "systemd-pstore.service",
	"systemd-network-generator.service",
	// Disks, random numbers and audit, which the host handles.
	"systemd-remount-fs.service", "systemd-random-seed.service", "systemd-journald-audit.socket", "e2scrub_reap.service",
	// Terminals. The console output of a container is recorded, and nobody can log in there. The
	// terminal of an unprivileged container belongs to the host, and systemd 258 cannot open it.
	// Unit console-getty would fail, and each node would be degraded (systemd issue 39036).
	// systemd-getty-generator(8) pulls in both of these units, so disabling them is not enough.
	"console-getty.service", "container-getty@.service",
	"getty-static.service", "getty@.service", "serial-getty@.service",
	"systemd-ask-password-console.path", "systemd-ask-password-wall.path",
}

// masked are units that no node starts.
var masked = []string{
	// Daily maintenance for machines that are administered by hand. On 64 nodes it would run at the
	// same time. Nodes get updates through a new layer, not through an upgrade.
	"apt-daily.timer", "apt-daily-upgrade.timer", "apt-daily.service", "apt-daily-upgrade.service",
	"e2scrub_all.timer", "man-db.timer", "dpkg-db-backup.timer", "fstrim.timer",
	// Work that the image builder has already done for all nodes.
	"systemd-sysusers.service", "systemd-firstboot.service", "ldconfig.service", "systemd-journal-catalog-update.service",
	"systemd-update-done.service",
	// utmp's record of boots, which nobody reads.
	"systemd-update-utmp.service", "systemd-update-utmp-runlevel.service",
	// sshd runs as ssh.service from the start, which shows when it is ready.
	"ssh.socket",
}

// onDemand are services that systemd starts on a D-Bus request. Starting them at every boot takes a
// sixth of the boot time, and few nodes ever need them.
var onDemand = []string{"dbus.service", "systemd-logind.service"}

// maskedGenerators are programs that systemd runs at the start of every boot to detect features that a
// node never has. Such features are encrypted, verified or unnamed disks, a suspended image, or a
// kernel command line of its own. The programs are a fifth of the work of a boot.
var maskedGenerators = []string{
	"bless-boot", "cryptsetup", "debug", "gpt-auto", "hibernate-resume", "integritysetup", "rc-local", "run",
	"system-update",
	"ssh", "tpm2", "veritysetup",
}

// fittings returns the files that a system with systemd needs to run as a node. After any change,
// increase constant fit in package spec.
func fittings() []File {
	all := []File{
		// The journal preallocates 8 MiB for each of its files by default, more than everything
		// else that a node writes.
		{Path: "/etc/systemd/journald.conf.d/orrery.conf", Text: `[Journal]
SystemMaxFileSize=512K
SystemMaxFiles=100
RuntimeMaxFileSize=512K
Audit=no
ReadKMsg=no
`},
		// The target multi-user.target starts the services. There is no display for
		// graphical.target.
		{Path: unitsDir + "/default.target", Text: "/lib/systemd/system/multi-user.target", Link: true},
		// sshd checks its configuration at startup. A separate check before that would double the
		// time.
		{Path: unitsDir + "/ssh.service.d/orrery.conf", Text: "[Service]\nExecStartPre=\n"},
	}
	for _, unit := range notInContainers {
		all = append(all, File{Path: unitsDir + "/" + unit + ".d/orrery.conf",
			Text: "[Unit]\nConditionVirtualization=!container\n"})
	}
	absent := func(path string) { all = append(all, File{Path: path, Text: "/dev/null", Link: true}) }
	for _, unit := range masked {
		absent(unitsDir + "/" + unit)
	}
	for _, unit := range onDemand {
		absent(unitsDir + "/multi-user.target.wants/" + unit)
	}
	for _, name := range maskedGenerators {
		absent("/etc/systemd/system-generators/systemd-" + name + "-generator")
	}
	return all
}

// properties are the queried properties of each unit (systemctl(1), org.freedesktop.systemd1(5)).
var properties = []string{
	"LoadState", "ActiveState", "SubState", "UnitFileState", "Result", "Type", "RemainAfterExit", "ConditionResult",
	"ConditionTimestampMonotonic", "Job",
	"NRestarts",
}

// A unitProperties has the properties of a unit.
type unitProperties map[string]string

// parseUnits parses the output of systemctl show: a block of lines for each unit, separated by empty
// lines.
func parseUnits(text string) []unitProperties {
	var all []unitProperties
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		s := unitProperties{}
		for line := range strings.Lines(block) {
			if key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok && slices.Contains(properties, key) {
				s[key] = value
			}
		}
		if len(s) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// failureResults are the possible values of property Result of a failed unit (systemd.exec(5)). Other text
// from a node is not repeated.
var failureResults = []string{
	"exit-code", "signal", "core-dump", "watchdog", "start-limit-hit", "timeout", "oom-kill", "resources", "protocol",
	"exec-condition", "condition",
}

// unitState returns how a unit differs from its desired state.
func (s unitProperties) unitState() UnitState {
	because := ""
	if slices.Contains(failureResults, s["Result"]) {
		because = " (" + s["Result"] + ")"
	}
	switch {
	case strings.HasPrefix(s["UnitFileState"], "masked") || s["LoadState"] == "masked":
		return UnitState{NotRunning, "masked"}
	case s["LoadState"] == "not-found":
		return UnitState{Missing, "unknown to systemd"}
	case s["LoadState"] != "loaded":
		return UnitState{NotRunning, "not readable by systemd"}
	case s["ActiveState"] == "failed":
		return UnitState{NotRunning, "failed" + because}
	case s["ActiveState"] == "activating" && s["SubState"] == "auto-restart":
		return UnitState{NotRunning, "failing repeatedly" + because}
	case s["ActiveState"] == "inactive" && !s.done() && !s.awaited() || s["ActiveState"] == "deactivating":
		return UnitState{NotRunning, "stopped"}
	case s["UnitFileState"] == "disabled":
		return UnitState{Disabled, "disabled"}
	}
	return UnitState{}
}

// startInfo returns how a unit was started (systemd.service(5), Type= and NRestarts). A simple service
// counts as started after the fork, one of type exec after its program was executed.
func (s unitProperties) startInfo() StartInfo {
	restarts, _ := strconv.Atoi(s["NRestarts"]) // only services have this property
	return StartInfo{slices.Contains([]string{"simple", "exec", "idle"}, s["Type"]), restarts}
}

// awaited reports whether a unit that is not running will start soon as part of the boot.
func (s unitProperties) awaited() bool { return s["Job"] != "" && s["Job"] != "0" }

// done reports whether a unit that is not running has finished its work. This is a one-shot service
// that succeeded, or a unit whose conditions do not hold.
func (s unitProperties) done() bool {
	once := s["Type"] == "oneshot" && s["Result"] == "success" && s["RemainAfterExit"] != "yes"
	tried := s["ConditionTimestampMonotonic"] != "" && s["ConditionTimestampMonotonic"] != "0"
	return tried && (once || s["ConditionResult"] == "no")
}

// unitsDir is the directory where systemctl enable creates links.
const unitsDir = "/etc/systemd/system"

// maxUnits limits the number of entries read from unitsDir, because nodes write there.
const maxUnits = 4096

// disable removes the links that pull in a unit (systemd.unit(5): .wants, .requires and .upholds
// directories).
func disable(system *tree.Root, unit string) error {
	if path.Ext(unit) == "" {
		unit += ".service" // the same default as systemctl
	}
	pullers, err := system.Names(unitsDir, maxUnits)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, dir := range pullers {
		if !isDependencyDir(dir) {
			continue
		}
		link := path.Join(unitsDir, dir, unit)
		if _, err := system.Readlink(link); err != nil {
			continue // it does not exist, or systemd ignores it
		}
		if err := system.Remove(link); err != nil {
			return err
		}
	}
	return nil
}

func isDependencyDir(dir string) bool {
	return strings.HasSuffix(dir, ".wants") || strings.HasSuffix(dir, ".requires") || strings.HasSuffix(dir, ".upholds")
}
