package reach

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"orrery/internal/problem"
	"orrery/internal/text/pattern"
	"orrery/internal/text/sanitize"
)

// A knownError maps an error line of ssh to the problem that a user sees.
type knownError struct {
	line func() *regexp.Regexp // matches a whole line that ssh itself prints
	what string
	cure string // %[1]s is the command with which a user would log in to the host
	kind problem.Kind
}

// knownErrors are tried in this order. The patterns match the English messages of OpenSSH (LC_ALL=C).
var knownErrors = []knownError{
	{pattern.New(`^@ +WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! +@$`),
		"its SSH host key has changed: it was replaced, or another machine answers",
		"compare its fingerprint with the one on its console; if they match, ssh-keygen -R the host and run %[1]s once",
		problem.Unable},
	{pattern.New(`^Host key verification failed\.$`), "its SSH host key is unknown on this machine",
		"run %[1]s once, and compare the fingerprint before you answer yes", problem.Unable},
	{pattern.New(`^\S+: Permission denied \(.*\)\.$`), "it refuses the login",
		"make %[1]s work without a prompt: add your public key to ~/.ssh/authorized_keys on the host, or start an ssh-agent",
		problem.Unable},
	{pattern.New(`^Received disconnect from \S+ port \d+:2: Too many authentication failures$`),
		"it refuses the login: too many keys were tried",
		"name the right one in ~/.ssh/config (IdentityFile, IdentitiesOnly yes)", problem.Unable},
	{pattern.New(`^ssh: Could not resolve hostname `), "its name cannot be resolved", "check address in site.toml",
		problem.Failed},
	{pattern.New(`^Timeout, server .* not responding\.$`), "the connection stalled: no data arrives",
		"check that it runs and is reachable (%[1]s), and run the same command again", problem.Failed},
	{pattern.New(`^ssh: connect to host .*: Connection refused$`), "no SSH server answers",
		"check that sshd runs on the host, on that port", problem.Failed},
	{pattern.New(`^(ssh: connect to host .*: Connection timed out$|Connection timed out during )`), "no answer",
		"check that it runs and is reachable (%[1]s)", problem.Failed},
	{pattern.New(`^ssh: connect to host .*: (No route to host|Network is unreachable)$`), "no answer",
		"check that it runs and is reachable (%[1]s)", problem.Failed},
}

// Texts of ssh: before a quoted message of another host, and for a connection that another program
// makes (ProxyJump, ProxyCommand).
const (
	disconnectPrefix = "Received disconnect from "
	unknownPeer      = "UNKNOWN port 65535"
)

// sshErrorStatus is the exit status of ssh if it has no connection. Any other status is that of the
// remote command.
const sshErrorStatus = 255

// explain returns the reason why a host could not be reached.
func (f Target) explain(err error, l *Conn) error {
	var no *refusal
	var p *problem.Problem
	switch {
	case errors.As(err, &no):
		return f.refusalProblem(no)
	case errors.As(err, &p):
		return err
	}
	if p := f.knownProblem(l.log.String()); p != nil {
		return p
	}
	printed := cmp.Or(lastLine(l.errs.String()), l.noise)
	p = problem.New(problem.Failed, "host %s was not reached", f.Name).At(f.Address).
		Try("check that %s works", f.sshCommand())
	ran, status := l.remoteStatus()
	switch last := lastLine(l.log.String()); {
	case l.begun.Load() == tooLate:
		return p.Because(errors.New("it accepted the login but sent nothing within " + loginTimeout.String()))
	case errors.Is(err, errNoise):
		return p.Because(err)
	case ran && strings.HasPrefix(printed, "sudo:"):
		return f.refusalProblem(&refusal{"sudo", printed})
	case ran:
		p = problem.New(problem.Unable,
			"host %s: its login shell exited (status %d) before it could start this program", f.Name, status).
			At(f.Address).
			Try("see what %s true prints; causes are an exit in ~/.bashrc and a login without a shell (nologin)",
				f.sshCommand())
		if printed != "" {
			p = p.Because(fmt.Errorf("it printed %q", sanitize.Line(printed)))
		}
		return p
	case strings.Contains(last, unknownPeer) && printed != "": // failed on the way: that program printed why
		return p.Because(errors.New(printed))
	case last != "":
		return p.Because(errors.New(last))
	case printed != "":
		return p.Because(errors.New(printed))
	}
	return p.Because(err)
}

// remoteStatus reports whether the remote command was run and has ended, and with which status.
func (l *Conn) remoteStatus() (remoteStatus bool, status int) {
	select {
	case <-l.gone:
	case <-time.After(endGrace):
		return false, 0
	}
	return l.status >= 0 && l.status != sshErrorStatus, l.status
}

// refusalProblem returns the problem for a refusal of the remote host.
func (f Target) refusalProblem(r *refusal) error {
	p := problem.New(problem.Unable, "host %s: %s", f.Name, r.detail).At(f.Address)
	switch {
	case r.word == "sudo":
		p.What = "host " + f.Name + ": its login cannot become root without a prompt: " + r.detail
		return p.Try("give it \"NOPASSWD: ALL\" in /etc/sudoers.d on the host, or log in as root")
	case r.word == "arch":
		p.What = "host " + f.Name + " has another architecture: " + r.detail
		return p.Try("make dist builds orrery for amd64 and arm64: put that build beside this program, as orrery-%s",
			archOf(r.detail))
	case r.word == "open":
		p.What = "host " + f.Name + ": users other than root can write to " + r.detail + ", where root's programs are stored"
		return p.Try("find out who created it, then: chown root: %s; chmod 755 %[1]s", r.detail)
	case strings.Contains(r.detail, "No space left") || strings.Contains(r.detail, "quota exceeded"):
		p.What = "host " + f.Name + ": its disk is full, with no room for this program: " + r.detail
		return p.Try("make room below /var/lib/orrery on the host")
	case r.word == "put":
		p.Kind, p.What = problem.Failed, "host "+f.Name+": this program could not be stored: "+r.detail
		return p.Try("check that directory on the host, and run the same command again")
	}
	return p.Try("check that %s works", f.sshCommand())
}

func archOf(machine string) string {
	for arch, m := range machines {
		if m == machine {
			return arch
		}
	}
	return machine
}

// lostError returns the reason why an open connection has ended.
func (f Target) lostError(cause error, l *Conn) error {
	log := l.log.String()
	if p := f.knownProblem(log); p != nil {
		return p
	}
	p := problem.New(problem.Failed, "host %s: the connection has ended", f.Name).At(f.Address).Because(cause).
		Try("check that %s works, and run the same command again: it continues where it stopped", f.sshCommand())
	if last := lastLine(log); last != "" {
		return p.Because(errors.New(last))
	}
	if printed := lastLine(l.errs.String()); printed != "" {
		return p.Because(fmt.Errorf("%w; its last output is %q", cause, sanitize.Line(printed)))
	}
	return p
}

// knownProblem returns the problem for a known error in the log of ssh, or nil. It ignores what ssh quotes
// from another host, and all lines after that, which the other host may control.
func (f Target) knownProblem(log string) *problem.Problem {
	var own []string
	for line := range strings.Lines(log) {
		own = append(own, strings.TrimRight(line, "\r\n"))
		if strings.HasPrefix(line, disconnectPrefix) {
			break
		}
	}
	for _, s := range knownErrors {
		if slices.ContainsFunc(own, s.line().MatchString) {
			return problem.New(s.kind, "host %s: %s", f.Name, s.what).At(f.Address).
				Try("%s", strings.ReplaceAll(s.cure, "%[1]s", f.sshCommand()))
		}
	}
	return nil
}

// lastLine returns the last line of what was printed.
func lastLine(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
