package host

import "os"

// SystemdRuns reports whether systemd(1) runs the host, as sd_booted(3) does.
func SystemdRuns() bool {
	_, err := os.Lstat("/run/systemd/system")
	return err == nil
}
