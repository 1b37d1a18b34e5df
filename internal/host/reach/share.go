package reach

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// KeepEnv is the environment variable that sets how long a login is kept after its last use.
const KeepEnv = "ORRERY_KEEP"

const (
	defaultKeep = time.Minute
	maxKeep     = time.Hour
	maxLoginAge = 15 * time.Minute // so that a login that is no longer allowed ends
)

// Sharing determines how runs share logins. The first run leaves its login to a background process
// of ssh, through which later runs start remote commands (ControlMaster and ControlPersist of
// ssh_config(5)).
type Sharing struct {
	Dir  string        // directory of the sockets
	Keep time.Duration // how long a login is kept after its last use, or 0 if each run logs in
}

// SharingFromEnv returns how logins are shared, from the environment. A user other than root shares
// logins only with a private XDG_RUNTIME_DIR.
func SharingFromEnv(dirs host.Dirs) (s Sharing, err error) {
	s.Keep = defaultKeep
	if text := os.Getenv(KeepEnv); text != "" {
		if s.Keep, err = parseKeep(text); err != nil {
			return s, problem.New(problem.Usage, "%s is %q, which is not a time to keep connections to hosts", KeepEnv, text).
				Try("set it to a number of seconds, up to %d, or to 0 to keep none", int(maxKeep.Seconds()))
		}
	}
	switch dir := os.Getenv("XDG_RUNTIME_DIR"); {
	case os.Geteuid() == 0:
		s.Dir = filepath.Join(dirs.Run, "links")
	case filepath.IsAbs(dir) && checkPrivate(dir) == nil:
		s.Dir = filepath.Join(dir, "orrery")
	default:
		s.Keep = 0
	}
	return s, nil
}

func parseKeep(text string) (time.Duration, error) {
	if n, err := strconv.Atoi(text); err == nil {
		text = fmt.Sprintf("%ds", n)
	}
	d, err := time.ParseDuration(text)
	if err == nil && (d < 0 || d > maxKeep) {
		err = errors.New("it is out of range")
	}
	return d, err
}

// checkPrivate returns an error unless dir is a directory that only this user can enter.
func checkPrivate(dir string) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() || st.Mode&0o077 != 0 {
		return fmt.Errorf("%s is not a private directory of this user", dir)
	}
	return nil
}

// socket returns the path of the control socket for a host, or "" if the run must not share a
// login.
func (s Sharing) socket(f Target) string {
	if s.Keep == 0 {
		return ""
	}
	if err := os.MkdirAll(filepath.Dir(s.Dir), 0o755); err != nil {
		return ""
	}
	if err := os.Mkdir(s.Dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) || checkPrivate(s.Dir) != nil {
		return ""
	}
	path := filepath.Join(s.Dir, f.loginKey()[:16])
	const maxPath = 107 - len(".0123456789abcdef") // of sockaddr_un, and ssh first creates the socket with a suffix
	if len(path) > maxPath || strings.ContainsAny(path, "%\"\\ ") {
		return ""
	}
	return path
}

// loginKey returns a key for a login. It depends on everything that determines the destination, the
// user and the credentials of ssh, and changes every maxLoginAge.
func (f Target) loginKey() string {
	ssh, _ := exec.LookPath("ssh")
	space, _ := os.Readlink("/proc/self/ns/net")
	sum := sha256.New()
	for _, text := range append(f.options(), ssh, space, fileVersion("/etc/ssh/ssh_config")) {
		fmt.Fprintf(sum, "%q\n", text)
	}
	for _, name := range []string{"HOME", "SSH_AUTH_SOCK", "SUDO_UID"} {
		fmt.Fprintf(sum, "%q\n", os.Getenv(name))
	}
	if home, err := os.UserHomeDir(); err == nil {
		for _, name := range []string{"config", "known_hosts"} {
			fmt.Fprintf(sum, "%q\n", fileVersion(filepath.Join(home, ".ssh", name)))
		}
	}
	fmt.Fprintf(sum, "%d\n", time.Now().Unix()/int64(maxLoginAge.Seconds()))
	return hex.EncodeToString(sum.Sum(nil))
}

// fileVersion returns a text that changes with every change of a file, or "" if there is no file.
func fileVersion(path string) string {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return ""
	}
	return host.FileVersion(&st)
}

// A route describes how ssh connects to a host.
type route struct {
	options []string
	// the control socket of the shared login, which outlives the connection, or "" if the login is
	// not shared
	socket string
	kept   bool // the login exists already
}

// route returns how to connect to a host. If the user's own ssh keeps a login open, it uses that
// login.
func (s Sharing) route(f Target) route {
	alone := route{options: append([]string{"-o", "ControlMaster=no"}, f.options()...)}
	path := s.socket(f)
	if path == "" {
		return alone
	}
	c, err := net.DialTimeout("unix", path, checkTimeout)
	if err == nil {
		_ = c.Close()
	} else if f.keptByUser() {
		return alone
	}
	options := []string{"-o", "ControlMaster=auto", "-o", "ControlPath=" + path, "-o",
		fmt.Sprintf("ControlPersist=%d", int(s.Keep.Seconds()))}
	return route{append(options, f.options()...), path, err == nil}
}

// checkTimeout limits how long ssh may take to report whether it keeps a login, or to drop one.
const checkTimeout = time.Second

// keptByUser reports whether the user's own ssh keeps a login to the host.
func (f Target) keptByUser() bool { return f.control("check") }

// control sends a control command to the process that keeps a login (-O of ssh(1)), and reports whether
// it succeeded.
func (f Target) control(what string, options ...string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	args := append([]string{"-O", what}, options...)
	return host.Program(ctx, "ssh", append(args, f.options()...)...).Run() == nil
}

// stopSharing stops the sharing of a login that may no longer work. Runs that use it now continue.
func (f Target) stopSharing(by route) {
	if !f.control("stop", "-o", "ControlPath="+by.socket) {
		_ = os.Remove(by.socket)
	}
}
