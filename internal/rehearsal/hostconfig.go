package rehearsal

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
)

// runNewborn is the first role of a host's first process, in its new namespaces. It enters the host's
// control groups, and makes them the root of its cgroup namespace.
func runNewborn(args []string) error {
	group, all := args[0], hierarchies(mounted)
	for _, h := range all {
		if err := enter(filepath.Join(h.dir, group)); err != nil {
			return err
		}
	}
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return err
	}
	for _, h := range all {
		if h.alone {
			if err := enter(filepath.Join(h.dir, group, leaf)); err != nil {
				return err
			}
		}
	}
	return execRole(roleInit)
}

// A hostConfig is the configuration that the supervisor sends to a new host.
type hostConfig struct {
	Number   int
	Places   []Place
	Keys     keys
	Programs map[string]string
	Binds    []string `json:"Shown"`
}

// self returns the Place of the host itself.
func (b hostConfig) self() Place { return b.Places[b.Number-1] }

// runInit is the role of a host's first process. It mounts the host's own root and starts its SSH
// server. Then it reaps processes whose parents have ended.
func runInit([]string) (err error) {
	defer func() {
		if err != nil {
			fmt.Fprint(os.Stdout, err) // to the supervisor
		}
	}()
	var b hostConfig
	if err := json.NewDecoder(bufio.NewReader(os.Stdin)).Decode(&b); err != nil {
		return err
	}
	for _, do := range []func() error{b.mountRoot, b.enterRoot, b.name, b.keysAndAccess, b.addLoginUser, b.address,
		b.serveSSH} {
		if err := do(); err != nil {
			return err
		}
	}
	if _, err := os.Stdout.WriteString(readyLine); err != nil {
		return err
	}
	os.Stdin.Close()
	os.Stdout.Close()
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); errors.Is(err, unix.ECHILD) {
			time.Sleep(time.Second) // another process may still enter
		}
	}
}

func (b hostConfig) enterRoot() error { return moveInto(rootOf(b.Number)) }

// name sets the host's name and identity, and writes the names of the other hosts.
func (b hostConfig) name() error {
	if err := unix.Sethostname([]byte(b.self().Name)); err != nil {
		return err
	}
	names := "127.0.0.1 localhost\n::1 localhost\n"
	for _, p := range b.Places {
		names += p.Addresses[0].Addr().String() + " " + strings.Join(append([]string{p.Name}, p.Aliases...), " ") + "\n"
	}
	id := fmt.Sprintf("%x", sha256.Sum256([]byte(b.Keys.Hosts[b.Number].Public)))[:32]
	return write(map[string]string{"/etc/hostname": b.self().Name + "\n", "/etc/hosts": names,
		"/etc/machine-id": id + "\n"}, 0o644)
}

// keysAndAccess installs the host's keys, and allows root of every host to log in.
func (b hostConfig) keysAndAccess() error {
	for _, dir := range []struct {
		path string
		mode os.FileMode
	}{{"/root/.ssh", 0o700}, {"/run/sshd", 0o755}, {"/run/lock", 0o777}} {
		if err := makeDir(dir.path, dir.mode); err != nil {
			return err
		}
	}
	return write(b.access(), 0o600)
}

// access returns the files by which hosts authenticate one another.
func (b hostConfig) access() map[string]string {
	return map[string]string{
		"/etc/ssh/ssh_host_ed25519_key": b.Keys.Hosts[b.Number].Private,
		"/etc/ssh/sshd_config":          fmt.Sprintf("Port %d\n", b.port()) + sshdConfig,
		"/root/.ssh/id_ed25519":         b.Keys.User.Private,
		"/root/.ssh/authorized_keys":    b.Keys.User.Public,
		"/root/.ssh/known_hosts":        b.Keys.known(b.Places),
		"/root/.ssh/config":             "BatchMode yes\n",
	}
}

func (b hostConfig) port() int { return cmp.Or(b.self().Port, 22) }

// addLoginUser adds the user of Place who may log in, in addition to root.
func (b hostConfig) addLoginUser() error {
	if b.self().User == "" {
		return nil
	}
	cmd := host.Program(context.Background(), "/bin/sh", "-c", addUser, "sh", b.self().User, "true")
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("user %s: %w\n%s", b.self().User, err, out)
	}
	return nil
}

const sshdConfig = `HostKey /etc/ssh/ssh_host_ed25519_key
PidFile none
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
PermitUserEnvironment yes
UseDNS no
MaxStartups 200
MaxSessions 200
Subsystem sftp internal-sftp
`

// serveSSH starts the SSH server and waits until it answers.
func (b hostConfig) serveSSH() error {
	log, err := os.OpenFile("/var/log/sshd.log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	sshd := host.Program(context.Background(), "/usr/sbin/sshd", "-D", "-e", "-f", "/etc/ssh/sshd_config")
	sshd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}
	sshd.Stdout, sshd.Stderr = log, log
	if err := sshd.Start(); err != nil {
		return err
	}
	return retry(func() error {
		c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port())))
		if err != nil {
			return err
		}
		return c.Close()
	})
}

func write(files map[string]string, mode os.FileMode) error {
	for path, text := range files {
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			return err
		}
		if err := os.Chmod(path, mode); err != nil {
			return err
		}
	}
	return nil
}

// startTimeout limits how long a start may take.
const startTimeout = 30 * time.Second

// retry calls try until it returns nil, but not longer than startTimeout.
func retry(try func() error) error {
	began := time.Now()
	for {
		err := try()
		if err == nil || time.Since(began) > startTimeout {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}
