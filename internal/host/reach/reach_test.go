package reach

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/host/login"
	"orrery/internal/problem"
	"orrery/test/need"

	"golang.org/x/crypto/ssh"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// limit bounds an operation that normally ends at once, even on a busy machine.
const limit = time.Minute

// A bench has a fake ssh, which runs the remote command on this machine, with fake programs in its
// PATH.
type bench struct {
	*testing.T
	bin, state string
	arms       *Builds
	share      Sharing
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, bin: t.TempDir(), state: filepath.Join(t.TempDir(), "state")}
	b.program("ssh", `for a; do last=$a; done; echo "$@" > `+b.bin+`/called; exec sh -c "$last"`)
	b.program("id", "echo 0")
	b.program("far", `read word; echo "$word, $*, $(dirname "$0")"; cat`)
	b.arms = &Builds{Self: filepath.Join(b.bin, "far"), Memos: filepath.Join(b.bin, "memos")}
	t.Setenv("PATH", b.bin+":"+os.Getenv("PATH"))
	t.Setenv("ORRERY_STATE", b.state)
	return b
}

func (b *bench) program(name, text string) {
	b.Helper()
	must(b, os.WriteFile(filepath.Join(b.bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755))
}

func (b *bench) dial() (*Conn, error) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), limit)
	defer cancel()
	l, err := Target{"sv2", "ops@10.8.1.2:2222"}.Dial(ctx, b.arms, b.share, "host-helper", "--now")
	if err == nil {
		b.Cleanup(func() { _ = l.Close() })
	}
	return l, err
}

// wants says what an error must be.
func wants(t *testing.T, err error, kind problem.Kind, words ...string) {
	t.Helper()
	if err == nil || problem.ExitCode(err) != int(kind) {
		t.Fatalf("status %d: %v", problem.ExitCode(err), err)
	}
	for _, w := range append(words, "sv2") {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is not in: %v", w, err)
		}
	}
}

// answered sends a line to the remote program, and returns its answer.
func answered(t *testing.T, l *Conn) string {
	t.Helper()
	_, err := io.WriteString(l, "hello\n")
	must(t, err)
	line, err := bufio.NewReader(l).ReadString('\n')
	must(t, err)
	return strings.TrimSpace(line)
}

// TestDial checks that the program is sent to a host once, and started there with its arguments.
// Output of the login before that is ignored.
//
// Promise (Other hosts): The program started on another host is what was sent, in a directory to
// which only root may write. With host/reach.TestRefused.
func TestDial(t *testing.T) {
	b := newBench(t)
	b.program("ssh", `for a; do last=$a; done; echo "$@" > `+b.bin+
		`/called; echo Welcome; printf "orrery-host\nno end"; exec sh -c "$last"`)
	l, err := b.dial()
	must(t, err)
	self, err := os.ReadFile(b.arms.Self)
	must(t, err)
	if l.Pushed != int64(len(self)) {
		t.Errorf("%d bytes were sent of %d", l.Pushed, len(self))
	}
	arms, err := b.arms.all()
	must(t, err)
	dir := filepath.Join(b.state, "helper", arms[0].digest)
	if got, want := answered(t, l), "hello, host-helper --now, "+dir; got != want {
		t.Errorf("it answers %q, not %q", got, want)
	}
	must(t, l.Close())
	<-l.ended
	called, err := os.ReadFile(filepath.Join(b.bin, "called"))
	must(t, err)
	for _, want := range []string{"BatchMode=yes", "ControlMaster=no", "ServerAliveInterval=3",
		"-l ops -p 2222 -- 10.8.1.2 exec /bin/sh -c"} {
		if !strings.Contains(string(called), want) {
			t.Errorf("%q is not in: ssh %s", want, called)
		}
	}
	l, err = b.dial()
	must(t, err)
	if l.Pushed != 0 {
		t.Errorf("%d bytes were sent again", l.Pushed)
	}
	if got := answered(t, l); !strings.HasPrefix(got, "hello, host-helper") {
		t.Errorf("it answers %q", got)
	}
	left, err := os.ReadDir(filepath.Join(b.state, "helper"))
	must(t, err)
	if len(left) != 1 {
		t.Errorf("left are %v", left)
	}
}

// TestQuoting checks that the command line contains nothing that a login shell such as csh or fish
// interprets.
func TestQuoting(t *testing.T) {
	for what, script := range map[string]string{"ascent": sudoScript, "entry": rootScript} {
		if i := strings.IndexAny(script, "'!\n"); i >= 0 {
			t.Errorf("%s has %q: …%s", what, script[i], script[max(0, i-20):i])
		}
	}
	for _, shell := range []string{"bash", "dash", "zsh", "fish", "csh", "tcsh", "ksh"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		b := newBench(t)
		b.program("ssh", `for a; do last=$a; done; exec `+path+` -c "$last"`)
		l, err := b.dial()
		must(t, err)
		if got := answered(t, l); !strings.HasPrefix(got, "hello, host-helper --now") {
			t.Errorf("%s: it answers %q", shell, got)
		}
	}
}

// TestRefused checks that every reason why the program cannot start is reported with the host and
// the cure.
func TestRefused(t *testing.T) {
	fails := func(words string) func(*bench) {
		return func(b *bench) { b.says(words, 255) }
	}
	for name, c := range map[string]struct {
		when  func(*bench)
		kind  problem.Kind
		words []string
	}{
		"unknown key": {fails("Host key verification failed."), problem.Unable,
			[]string{"is unknown on this machine", "ssh -p 2222 ops@10.8.1.2", "fingerprint"}},
		"another key": {fails("@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed."),
			problem.Unable, []string{"another machine answers", "ssh-keygen -R"}},
		"refused login": {fails("ops@10.8.1.2: Permission denied (publickey)."), problem.Unable,
			[]string{"refuses the login", "authorized_keys"}},
		"no server": {fails("ssh: connect to host 10.8.1.2 port 2222: Connection refused"), problem.Failed,
			[]string{"no SSH server"}},
		"nobody": {fails("ssh: connect to host 10.8.1.2 port 2222: Connection timed out"), problem.Failed,
			[]string{"no answer"}},
		"name": {fails("ssh: Could not resolve hostname sv2: Name or service not known"), problem.Failed,
			[]string{"name cannot be resolved"}},
		"stall": {fails("Timeout, server 10.8.1.2 not responding."), problem.Failed, []string{"the connection stalled"}},
		"something": {fails("kex_exchange_identification: read: Connection reset by peer"), problem.Failed,
			[]string{"Connection reset by peer", "ssh -p 2222"}},
		"no sudo": {func(b *bench) {
			b.program("id", "echo 1000")
			b.program("sudo", "echo 'sudo: a password is required' >&2; exit 1")
		}, problem.Unable, []string{"a password is required", "NOPASSWD"}},
		"architecture": {func(b *bench) { b.program("uname", "echo riscv64") }, problem.Unable,
			[]string{"riscv64", "make dist"}},
		"full disk": {func(b *bench) {
			b.program("head", "echo 'head: write error: No space left on device' >&2; exit 1")
		}, problem.Unable, []string{"disk is full", "make room"}},
		"full disk at once": {func(b *bench) {
			b.program("ssh", `exec <&-; printf '\norrery-host want %s\n\norrery-host put No space left on device\n' "$(uname -m)"`)
		}, problem.Unable, []string{"disk is full", "make room"}},
		"damaged": {func(b *bench) { b.program("sha256sum", "echo 0000  -") }, problem.Failed,
			[]string{"the received data does not match what was sent"}},
		"open directory": {func(b *bench) {
			must(b, os.MkdirAll(filepath.Join(b.state, "helper"), 0o755))
			must(b, os.Chmod(filepath.Join(b.state, "helper"), 0o777))
		}, problem.Unable, []string{"users other than root can write", "chmod"}},
		"no directory": {func(b *bench) {
			must(b, os.MkdirAll(b.state, 0o755))
			must(b, os.WriteFile(filepath.Join(b.state, "helper"), nil, 0o644))
		}, problem.Failed, []string{"could not be stored"}},
		"noise": {func(b *bench) { b.program("ssh", "exec yes") }, problem.Failed, []string{"prints much"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			c.when(b)
			l, err := b.dial()
			if err == nil {
				t.Fatal("it was reached", l)
			}
			wants(t, err, c.kind, c.words...)
			if left, _ := filepath.Glob(filepath.Join(b.state, "helper", ".*")); len(left) > 0 {
				t.Errorf("left are %v", left)
			}
		})
	}
}

// TestSudo checks that a user other than root becomes root without a password.
func TestSudo(t *testing.T) {
	b := newBench(t)
	b.program("id", "echo 1000")
	b.program("sudo", `[ "$1" = -n ] || exit 1; shift; [ "$1" != -- ] || shift; echo "$1" >> `+b.bin+`/raised; exec "$@"`)
	l, err := b.dial()
	must(t, err)
	answered(t, l)
	raised, err := os.ReadFile(filepath.Join(b.bin, "raised"))
	must(t, err)
	if string(raised) != "true\n/bin/sh\n" {
		t.Errorf("as root were run %q", raised)
	}
}

// TestGivenUp checks that Dial does not wait longer than its context.
func TestGivenUp(t *testing.T) {
	b := newBench(t)
	b.program("ssh", "exec sleep 1000")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := Target{"sv2", "10.8.1.2"}.Dial(ctx, b.arms, b.share)
	wants(t, err, problem.Failed, "was not reached")
}

// TestShared checks that a stalled connection of the user's own ssh has a shorter timeout than a
// login.
func TestShared(t *testing.T) {
	sharedLoginTimeout = 50 * time.Millisecond
	defer func() { sharedLoginTimeout = 8 * time.Second }()
	b := newBench(t)
	b.program("ssh", `[ "$1 $2" != "-O check" ] || exit 0; exec sleep 1000`)
	_, err := b.dial()
	wants(t, err, problem.Failed, "keeps open has stalled", "ssh -O exit -p 2222 ops@10.8.1.2")
	b.program("ssh", `[ "$1 $2" != "-O check" ] || { touch `+b.bin+`/asked; exit 255; }; until [ -e `+b.bin+
		`/asked ]; do sleep 0.01; done; for a; do last=$a; done; exec sh -c "$last"`)
	l, err := b.dial()
	must(t, err)
	answered(t, l)
}

// TestLoginKey checks that the key changes with everything that determines where a login leads.
//
// Promise (Other hosts): A kept connection leads where a new one would. With
// host/reach.TestLoginShared.
func TestLoginKey(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	must(t, os.MkdirAll(filepath.Join(home, ".ssh"), 0o700))
	seen := map[string]string{}
	key := func(what string, f Target) {
		t.Helper()
		k := f.loginKey()
		if seen[k] != "" {
			t.Errorf("%s: it is the same as with %s", what, seen[k])
		}
		seen[k] = what
	}
	sv2 := Target{"sv2", "ops@10.8.1.2:2222"}
	key("one", sv2)
	key("another address", Target{"sv2", "ops@10.8.1.3:2222"})
	key("another login", Target{"sv2", "root@10.8.1.2:2222"})
	key("another port", Target{"sv2", "ops@10.8.1.2"})
	must(t, os.WriteFile(filepath.Join(home, ".ssh", "config"), []byte("Host *\n"), 0o600))
	key("a configuration", sv2)
	t.Setenv("SSH_AUTH_SOCK", "/tmp/agent")
	key("an agent", sv2)
}

// TestKeep checks that the keep time is in seconds. A user other than root needs a private
// directory.
//
// Promise (Other hosts): Only the user who has logged in uses a kept connection.
func TestKeep(t *testing.T) {
	for text, want := range map[string]time.Duration{"": time.Minute, "0": 0, "5": 5 * time.Second, "3600": time.Hour,
		"90s": 90 * time.Second} {
		t.Setenv(KeepEnv, text)
		if os.Geteuid() != 0 {
			t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
			must(t, os.Chmod(os.Getenv("XDG_RUNTIME_DIR"), 0o700))
		}
		if s, err := SharingFromEnv(host.Dirs{Run: t.TempDir()}); err != nil || s.Keep != want || s.Dir == "" {
			t.Errorf("%q: %+v, %v", text, s, err)
		}
	}
	for _, text := range []string{"-1", "soon", "3601", "2h"} {
		t.Setenv(KeepEnv, text)
		if s, err := SharingFromEnv(host.Dirs{Run: t.TempDir()}); !problem.Is(err, problem.Usage) {
			t.Errorf("%q: %+v, %v", text, s, err)
		}
	}
	open := t.TempDir()
	must(t, os.Chmod(open, 0o755))
	if path := (Sharing{Dir: open, Keep: time.Minute}).socket(Target{"sv2", "sv2"}); path != "" {
		t.Errorf("a login is kept where others can enter: %s", path)
	}
}

// TestLoginShared checks that one login serves several runs, one after another and concurrently.
// This holds until the login ends or stalls, or sharing is off.
func TestLoginShared(t *testing.T) {
	keptTimeout = limit // a busy machine may be slow
	defer func() { keptTimeout = time.Second }()
	b, dir := sshd(t)
	b.share = Sharing{Dir: filepath.Join(t.TempDir(), "links"), Keep: time.Minute}
	serve, err := os.ReadFile(filepath.Join(b.bin, "serve"))
	must(t, err)
	b.program("serve", "echo login >> "+dir+"/logins\n"+strings.TrimPrefix(string(serve), "#!/bin/sh\n"))
	logins := func() int {
		text, _ := os.ReadFile(filepath.Join(dir, "logins"))
		return strings.Count(string(text), "login")
	}
	far := Target{"sv2", "sv2"}
	master := func() int { // returns the PID of the process that keeps the login
		out, _ := exec.Command("ssh", append([]string{"-O", "check", "-o", "ControlPath=" + b.share.socket(far)},
			far.options()...)...).CombinedOutput()
		var pid int
		_, _ = fmt.Sscanf(string(out), "Master running (pid=%d)", &pid)
		return pid
	}
	wantLogins := func(want int, when string) *Conn {
		t.Helper()
		l, err := b.enter()
		must(t, err)
		if got := answered(t, l); !strings.HasPrefix(got, "hello, host-helper") {
			t.Errorf("%s: it answers %q", when, got)
		}
		if got := logins(); got != want {
			t.Errorf("%s: there were %d logins, not %d", when, got, want)
		}
		return l
	}
	t.Cleanup(func() {
		if pid := master(); pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	first := wantLogins(1, "the first run")
	second := wantLogins(1, "one beside it")
	for _, l := range []*Conn{first, second} {
		must(t, l.Close())
		<-l.ended // even though the process that keeps the login has the log open
		<-l.gone
	}
	must(t, wantLogins(1, "one after it").Close())

	kept := b.share
	b.share.Keep = 0
	must(t, wantLogins(2, "who shares none").Close())
	b.share = kept

	pid := master()
	if pid == 0 {
		t.Fatal("nobody keeps the login")
	}
	must(t, syscall.Kill(pid, syscall.SIGSTOP)) // as if the host did not answer
	keptTimeout = time.Second
	must(t, wantLogins(3, "after a login that stalls").Close())
	keptTimeout = limit
	must(t, syscall.Kill(pid, syscall.SIGKILL))
	if again := master(); again == pid || again == 0 {
		t.Errorf("the login is kept by %d, which is what stalls or nobody", again)
	}
	must(t, syscall.Kill(master(), syscall.SIGKILL))
	must(t, wantLogins(4, "after a login that was killed").Close())
}

func TestParts(t *testing.T) {
	for address, want := range map[string]string{
		"sv2": " sv2 ", "ops@sv2": "ops sv2 ", "ops@10.8.1.2:2222": "ops 10.8.1.2 2222", "[fe80::1]:22": " fe80::1 22",
		"root@[fe80::1]": "root fe80::1 ",
	} {
		user, name, port := ParseAddress(address)
		if got := user + " " + name + " " + port; got != want {
			t.Errorf("%s: %q", address, got)
		}
	}
}

// sshd makes the system's ssh connect to a real sshd that runs as the user of this test, on
// standard input and output only.
func sshd(t *testing.T) (b *bench, dir string) {
	t.Helper()
	server, client := need.Program(t, "sshd"), need.Program(t, "ssh")
	b = newBench(t)
	b.program("sudo", `shift; [ "$1" != -- ] || shift; exec "$@"`)
	me, err := user.Current()
	must(t, err)
	dir = t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"mine", "host"} {
		text, err := login.GenerateKey(at(name), "test")
		must(t, err)
		key, err := ssh.ParsePrivateKey(text)
		must(t, err)
		line := string(ssh.MarshalAuthorizedKey(key.PublicKey()))
		must(t, os.WriteFile(at(name+".line"), []byte(line), 0o600))
		must(t, os.WriteFile(at(name+".known"), []byte("sv2 "+line), 0o600))
	}
	settings := fmt.Sprintf("HostKey %s\nAuthorizedKeysFile %s\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nPidFile none\nSetEnv ORRERY_STATE=%s PATH=%s:/usr/bin:/bin\n",
		at("host"), at("mine.line"), b.state, b.bin)
	must(t, os.WriteFile(at("sshd_config"), []byte(settings), 0o600))
	b.program("serve", `[ "$(/usr/bin/id -u)" != 0 ] || mkdir -p /run/sshd; exec `+server+` -i -f `+at("sshd_config"))
	known := fmt.Sprintf("Host sv2\nUser %s\nIdentityFile %s\nIdentitiesOnly yes\nUserKnownHostsFile %s\nGlobalKnownHostsFile none\nProxyCommand %s/serve\n",
		me.Username, at("mine"), at("host.known"), b.bin)
	must(t, os.WriteFile(at("config"), []byte(known), 0o600))
	b.program("ssh", "exec "+client+" -F "+at("config")+` "$@"`)
	return b, dir
}

func (b *bench) enter() (*Conn, error) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), limit)
	defer cancel()
	l, err := Target{"sv2", "sv2"}.Dial(ctx, b.arms, b.share, "host-helper")
	if err == nil {
		b.Cleanup(func() { _ = l.Close() })
	}
	return l, err
}

// TestSSH checks the system's ssh with a real sshd.
func TestSSH(t *testing.T) {
	b, _ := sshd(t)
	// More than the capacity of pipes and windows.
	must(t, os.WriteFile(filepath.Join(b.bin, "far"),
		[]byte("#!/bin/sh\nread word; echo \"$word, $*\"; exec cat\n#"+strings.Repeat("x", 8<<20)), 0o755))
	for _, pushed := range []bool{true, false} {
		l, err := b.enter()
		must(t, err)
		if (l.Pushed > 0) != pushed {
			t.Errorf("%d bytes were sent", l.Pushed)
		}
		if got := answered(t, l); got != "hello, host-helper" {
			t.Errorf("it answers %q", got)
		}
		must(t, l.Close())
		<-l.ended
	}
}

// TestSSHRefuses checks that the error messages of the system's ssh are recognised.
//
// Promise (Other hosts): A host whose SSH key is unknown or has changed gets nothing.
func TestSSHRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		when func(b *bench, dir string)
		word string
	}{
		"unknown key": {func(_ *bench, dir string) { must(t, os.WriteFile(filepath.Join(dir, "host.known"), nil, 0o600)) },
			"is unknown on this machine"},
		"another key": {func(_ *bench, dir string) {
			text, err := os.ReadFile(filepath.Join(dir, "mine.known"))
			must(t, err)
			must(t, os.WriteFile(filepath.Join(dir, "host.known"), text, 0o600))
		}, "another machine answers"},
		"refused login": {func(_ *bench, dir string) { must(t, os.WriteFile(filepath.Join(dir, "mine.line"), nil, 0o600)) },
			"refuses the login"},
	} {
		t.Run(name, func(t *testing.T) {
			b, dir := sshd(t)
			c.when(b, dir)
			_, err := b.enter()
			wants(t, err, problem.Unable, c.word)
		})
	}
}

// TestMemo checks that the digest of a program is computed once, and again when the program has
// changed. An invalid digest in the cache is ignored.
func TestMemo(t *testing.T) {
	b := newBench(t)
	digest := func() string {
		t.Helper()
		all, err := (&Builds{Self: b.arms.Self, Memos: b.arms.Memos}).all()
		must(t, err)
		return all[0].digest
	}
	first := digest()
	path, err := b.arms.digestPath(machines[runtime.GOARCH])
	must(t, err)
	text, err := os.ReadFile(path)
	must(t, err)
	if again := digest(); again != first {
		t.Errorf("of the same program the digests are %s and %s", first, again)
	}
	marked := strings.Repeat("0", 64)
	must(t, os.WriteFile(path, []byte(strings.Replace(string(text), first, marked, 1)), 0o600))
	if digest() != marked {
		t.Error("the digest is made again, of the same program")
	}
	for what, memo := range map[string]string{"no digest": strings.Replace(string(text), first, "../../etc", 1),
		"no JSON": "{", "nothing": ""} {
		must(t, os.WriteFile(path, []byte(memo), 0o600))
		if got := digest(); got != first {
			t.Errorf("%s: %s", what, got)
		}
	}
	b.program("far", "echo it is another")
	if digest() == first {
		t.Error("another program has the digest of the former one")
	}
}
