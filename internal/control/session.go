// Package control has what every operation on a site needs. That is a Session with the caller, the
// site directory and the hosts; consent; the site's lock; the journal; and a Job that observes the
// hosts, makes a plan, asks for consent and carries the plan out.
//
// To run an operation, make a Session that says for whom it acts, for which site directory, and with
// which Confirmer and Watcher. Load the site, and call an operation of one of the packages below this
// one, such as sites.Up and sites.Down, releases.Stage and releases.Switch, twins.Create,
// status.Read or backups.Take. The operation takes the site's lock, observes the hosts, makes a
// plan, and asks the Confirmer for the consent that the plan needs. It carries the plan out, informs the
// Watcher of each step, keeps the journal, and returns a typed result.
//
// Operations print nothing, know no flags and read no terminal. Tests can therefore run them on a
// machine in memory.
package control

import (
	"fmt"
	"os"
	"os/user"
	"runtime"

	"orrery/internal/control/here"
	"orrery/internal/control/hosts"
	"orrery/internal/control/register"
	"orrery/internal/host"
	"orrery/internal/member"
	"orrery/internal/plan"
)

// A Session is the work of one caller with the sites of this machine.
type Session struct {
	Dirs         host.Dirs
	Known        *register.KnownTwins // known twins, while the session lasts; copies of the session share them
	SiteDir      string               // the site directory, or the name of a site that is up, or "" to find it
	Named        string               // name of the site that SiteDir must declare, or "" for any
	Twin         string               // the name of the twin, or "" for the site itself
	Force        bool                 // allow changes to twins of other owners
	WaitForLocks bool                 // wait for locks held by other processes
	Release      int                  // select nodes of this release, or Live
	Command      string               // the command line, for locks and the journal
	Version      string               // of this program; helpers on other hosts must have the same

	Links  *hosts.Links  // to other hosts
	Ending plan.StopMode // how to end nodes that are stopped, restarted or taken down
	// hosts that are left out: they are not contacted, and no step may depend on what they have
	Without []string

	Member *member.Person // the caller, if a member who became root through sudo, or nil for root or any other user
	From   string         // the directory of a member

	// checked before every change of a site, or nil to skip the check (as overdue work itself does)
	Overdue   Overdue
	Routines  Routines     // what the site file schedules, or nil if the session does none of it
	Machine   here.Machine // the machine to work on, or nil for this one
	Confirmer Confirmer
	Watcher   Watcher
}

// Live selects the release that is live, whichever it is.
const Live = -1

// DefaultParallel returns the default number of concurrent steps. Steps mostly wait for disks and
// for systemd, so it is larger than the number of processors.
func DefaultParallel() int { return max(8, 4*runtime.NumCPU()) }

// UserName returns the name of the user who runs Orrery, even through sudo.
func UserName() string {
	if name := os.Getenv("SUDO_USER"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return fmt.Sprint(os.Getuid())
}

// Register returns the register of the sites on this machine.
func (c *Session) Register() register.Register {
	return register.Register{Dirs: c.Dirs, Known: c.Known}
}
