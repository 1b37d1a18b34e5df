package reach

import (
	"errors"
	"io"
	"strings"

	"orrery/internal/problem"
)

// A sign is how ssh, or what runs over there, says what is wrong; and what is told to a user.
type sign struct {
	says string
	what string
	cure string // %[1]s is what a user would type to get to the host
	kind problem.Kind
}

// signs are looked for in this order. The words are those of OpenSSH and sudo in English, as LC_ALL=C has them.
var signs = []sign{
	{"REMOTE HOST IDENTIFICATION HAS CHANGED", "its SSH host key is not the one that is known: it was made anew, or somebody else answers",
		"compare its fingerprint with that on its console; if it is right, ssh-keygen -R the host and type %[1]s once", problem.Unable},
	{"Host key verification failed", "its SSH host key is not known on this machine", "type %[1]s once, and compare the fingerprint before you say yes", problem.Unable},
	{"Permission denied", "it refuses the login", "let %[1]s get in without a question: put your public key into ~/.ssh/authorized_keys over there, or start an ssh-agent", problem.Unable},
	{"Too many authentication failures", "it refuses the login: too many keys were tried", "name the right one in ~/.ssh/config (IdentityFile, IdentitiesOnly yes)", problem.Unable},
	{"Could not resolve hostname", "its name is not known", "see address in site.toml", problem.Failed},
	{"not responding", "the connection stalls: nothing comes from it any more", "see whether it runs and is in reach (%[1]s), and run the same command again", problem.Failed},
	{"Connection refused", "no SSH server answers there", "see whether sshd runs there, at that port", problem.Failed},
	{"Connection timed out", "nobody answers", "see whether it runs and is in reach (%[1]s)", problem.Failed},
	{"No route to host", "nobody answers", "see whether it runs and is in reach (%[1]s)", problem.Failed},
	{"Network is unreachable", "nobody answers", "see whether it runs and is in reach (%[1]s)", problem.Failed},
	{"sudo:", "its login may not become root without a question", "give it \"NOPASSWD: ALL\" in /etc/sudoers.d over there, or log in as root", problem.Unable},
}

// explain says why a host was not reached.
func (f Far) explain(err error, said string) error {
	var no *refusal
	var p *problem.Problem
	switch {
	case errors.As(err, &no):
		return f.refused(no)
	case errors.As(err, &p):
		return err
	}
	if p := f.sign(said); p != nil {
		return p
	}
	p = problem.New(problem.Failed, "host %s was not reached", f.Name).At(f.Address).Try("see whether %s gets there", f.byHand())
	switch last := lastLine(said); {
	case last != "":
		return p.Because(errors.New(last))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return p.Because(errors.New("it took the login and said nothing in " + entering.String()))
	}
	return p.Because(err)
}

// refused says what the host lacks.
func (f Far) refused(r *refusal) error {
	p := problem.New(problem.Unable, "host %s: %s", f.Name, r.detail).At(f.Address)
	switch {
	case r.word == "sudo":
		p.What = "host " + f.Name + ": its login may not become root without a question: " + r.detail
		return p.Try("give it \"NOPASSWD: ALL\" in /etc/sudoers.d over there, or log in as root")
	case r.word == "arch":
		p.What = "host " + f.Name + " is of another architecture: " + r.detail
		return p.Try("make dist builds orrery for amd64 and arm64: put that of the other one beside this program, as orrery-%s", archOf(r.detail))
	case r.word == "open":
		p.What = "host " + f.Name + ": others than root may write to " + r.detail + ", where root's programs would be"
		return p.Try("see who has made it, then: chown root: %s; chmod 755 %[1]s", r.detail)
	case strings.Contains(r.detail, "No space left") || strings.Contains(r.detail, "quota exceeded"):
		p.What = "host " + f.Name + ": its disk is full, and this program has no room there: " + r.detail
		return p.Try("make room below /var/lib/orrery over there")
	case r.word == "put":
		p.Kind, p.What = problem.Failed, "host "+f.Name+": this program cannot be put there: "+r.detail
		return p.Try("see the directory over there, and run the same command again")
	}
	return p.Try("see whether %s gets there", f.byHand())
}

func archOf(machine string) string {
	for arch, m := range machines {
		if m == machine {
			return arch
		}
	}
	return machine
}

// lost says why a connection has ended that was open.
func (f Far) lost(cause error, said string) error {
	if p := f.sign(said); p != nil {
		return p
	}
	p := problem.New(problem.Failed, "host %s: the connection has ended", f.Name).At(f.Address).Because(cause).
		Try("see whether %s gets there, and run the same command again: it goes on from what is there", f.byHand())
	if last := lastLine(said); last != "" {
		p.Err = errors.New(last)
	}
	return p
}

// sign looks in what was printed for something that is known.
func (f Far) sign(said string) *problem.Problem {
	for _, s := range signs {
		if strings.Contains(said, s.says) {
			return problem.New(s.kind, "host %s: %s", f.Name, s.what).At(f.Address).Try("%s", strings.ReplaceAll(s.cure, "%[1]s", f.byHand()))
		}
	}
	return nil
}

// lastLine gives the last line of what was printed.
func lastLine(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
