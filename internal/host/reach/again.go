package reach

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/host/kept"
)

// Key says of which kind a connection is to a host that Dial would make now: one that another run has left is as good if it was of the same. So it has in it all that decides where ssh
// gets to and as whom, and which program is started there.
func (f Far) Key(a *Arms, args ...string) (string, error) {
	arms, err := a.all()
	if err != nil {
		return "", err
	}
	ssh, _ := exec.LookPath("ssh")
	space, _ := os.Readlink("/proc/self/ns/net")
	sum := sha256.New()
	for _, text := range append(f.options(), command(arms, args), ssh, space, stampOf("/etc/ssh/ssh_config")) {
		fmt.Fprintf(sum, "%q\n", text)
	}
	for _, name := range []string{"HOME", "SSH_AUTH_SOCK", "SUDO_UID"} {
		fmt.Fprintf(sum, "%q\n", os.Getenv(name))
	}
	if home, err := os.UserHomeDir(); err == nil {
		for _, name := range []string{"config", "known_hosts"} {
			fmt.Fprintf(sum, "%q\n", stampOf(filepath.Join(home, ".ssh", name)))
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// stampOf tells whether a file is still what it was.
func stampOf(path string) string {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return ""
	}
	return host.Stamp(&st)
}

// Again returns the connection that another run has left.
func (f Far) Again(e *kept.Ends) *Line {
	for _, f := range []*os.File{e.Errs, e.Log} {
		_ = f.SetReadDeadline(time.Time{})
	}
	return f.line(e)
}

// Leave returns the ends of a connection for the process that keeps it, or nil if it cannot be kept. The connection
// must be whole, and the caller must not use it any more.
func (l *Line) Leave() *kept.Ends {
	select {
	case <-l.ended:
		return nil
	default:
	}
	for _, f := range []*os.File{l.ends.Errs, l.ends.Log} {
		_ = f.SetReadDeadline(time.Unix(1, 0))
	}
	l.silent()
	if l.from.Buffered() > 0 || l.ends.Process == nil {
		return nil
	}
	e := l.ends
	l.closed.Do(func() { l.ends = nil })
	return e
}
