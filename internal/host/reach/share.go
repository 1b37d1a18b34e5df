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

// KeepSetting is the variable of the environment that says how long a login is kept after its last use.
const KeepSetting = "ORRERY_KEEP"

const (
	defaultKeep = time.Minute
	maxKeep     = time.Hour
	maxLoginAge = 15 * time.Minute // a login that is not allowed any more ends some time
)

// Sharing is how runs share logins: the first one leaves its login to a process of ssh's own, by
// which the next ones start what they need over there (ControlMaster and ControlPersist of
// ssh_config(5)).
type Sharing struct {
	Dir  string        // of the sockets
	Keep time.Duration // how long a login is kept after its last use; 0: each run logs in
}

// SharingOf returns how the user shares logins, as the environment has it. A user other than root
// does where he has a directory for what runs.
func SharingOf(dirs host.Dirs) (s Sharing, err error) {
	s.Keep = defaultKeep
	if text := os.Getenv(KeepSetting); text != "" {
		if s.Keep, err = keep(text); err != nil {
			return s, problem.New(problem.Usage, "%s is %q, and not how long connections to hosts are kept", KeepSetting, text).
				Try("say a number of seconds, up to %d, or 0: not at all", int(maxKeep.Seconds()))
		}
	}
	switch dir := os.Getenv("XDG_RUNTIME_DIR"); {
	case os.Geteuid() == 0:
		s.Dir = filepath.Join(dirs.Run, "links")
	case filepath.IsAbs(dir) && private(dir) == nil:
		s.Dir = filepath.Join(dir, "orrery")
	default:
		s.Keep = 0
	}
	return s, nil
}

func keep(text string) (time.Duration, error) {
	if n, err := strconv.Atoi(text); err == nil {
		text = fmt.Sprintf("%ds", n)
	}
	d, err := time.ParseDuration(text)
	if err == nil && (d < 0 || d > maxKeep) {
		err = errors.New("it is out of bounds")
	}
	return d, err
}

// private wants a directory that nobody else can enter.
func private(dir string) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() || st.Mode&0o077 != 0 {
		return fmt.Errorf("%s is not a directory that is this user's alone", dir)
	}
	return nil
}

// socket returns the path by which ssh finds the login to a host, or "" if the run is to log in by itself.
func (s Sharing) socket(f Far) string {
	if s.Keep == 0 {
		return ""
	}
	if err := os.MkdirAll(filepath.Dir(s.Dir), 0o755); err != nil {
		return ""
	}
	if err := os.Mkdir(s.Dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) || private(s.Dir) != nil {
		return ""
	}
	path := filepath.Join(s.Dir, f.loginKey()[:16])
	const maxPath = 107 - len(".0123456789abcdef") // of sockaddr_un, and ssh makes it beside its place
	if len(path) > maxPath || strings.ContainsAny(path, "%\"\\ ") {
		return ""
	}
	return path
}

// loginKey names a login: it changes with all that decides where ssh gets to, as whom and by what,
// and after a while.
func (f Far) loginKey() string {
	ssh, _ := exec.LookPath("ssh")
	space, _ := os.Readlink("/proc/self/ns/net")
	sum := sha256.New()
	for _, text := range append(f.options(), ssh, space, stampOf("/etc/ssh/ssh_config")) {
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
	fmt.Fprintf(sum, "%d\n", time.Now().Unix()/int64(maxLoginAge.Seconds()))
	return hex.EncodeToString(sum.Sum(nil))
}

// stampOf tells whether a file is still what it was.
func stampOf(path string) string {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return ""
	}
	return host.Stamp(&st)
}

// A route is how ssh gets to a host.
type route struct {
	options []string
	// of the login along which it goes, and which goes on when the connection has ended; "": of none
	// that is shared
	socket string
	kept   bool // the login is there
}

// route returns how a connection is made. A login that the user's own ssh keeps is used as it is.
func (s Sharing) route(f Far) route {
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

// checkTimeout is how long ssh may take to say whether it keeps a login, or to forget one.
const checkTimeout = time.Second

// keptByUser reports whether the user's own ssh keeps a login to the host.
func (f Far) keptByUser() bool { return f.ask("check") }

// ask has ssh ask the process that keeps a login (-O of ssh(1)).
func (f Far) ask(what string, options ...string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	args := append([]string{"-O", what}, options...)
	return host.Program(ctx, "ssh", append(args, f.options()...)...).Run() == nil
}

// forget has no other run use the login of a route, which may be of no use any more. Runs that use
// it now go on.
func (f Far) forget(by route) {
	if !f.ask("stop", "-o", "ControlPath="+by.socket) {
		_ = os.Remove(by.socket)
	}
}
