// Package control has what every operation on a site needs: on whose behalf it runs, which site
// directory and hosts are meant, consent, the site's lock, the journal, and a Job that observes the
// hosts, plans, asks and carries the plan out.
//
// Make a Session that says on whose behalf you act, for which site directory, and with which Asker
// and Watcher. Load the site, then call an operation of one of the packages below this one:
// sites.Up and sites.Down, releases.Stage and releases.Switch, twins.Create, status.Read,
// backups.Take and so on. An operation looks at the hosts, makes a plan, gets the consent that it
// needs from the Asker, and takes the site's lock. It carries the plan out, informs the Watcher of
// each step, keeps the journal, and returns a typed result.
//
// Operations print nothing, know no flags and read no terminal, so tests can drive them on a machine in memory.
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

// A Session is the work of one caller with the sites of this host.
type Session struct {
	Dirs    host.Dirs
	Known   *register.Known // of twins, while the session lasts; shared by copies of it
	SiteDir string          // the site directory that is meant; "": found
	Twin    string          // the twin that is meant; "": the site itself
	Force   bool            // also what is somebody else's
	Patient bool            // wait for whoever else changes the site
	Release int             // of the nodes that are worked with; Live: of those that are live
	Command string          // as the caller said it, for locks and the journal
	Version string          // of this program, which is that of helpers on other hosts

	Links  *hosts.Links // to other hosts
	Ending plan.Ending  // how running nodes end that are stopped, restarted or taken down
	// hosts that are left out: nothing is asked of them, and nothing planned that depends on what they
	// have
	Without []string

	Member *member.Person // who calls without being root, through sudo; nil: root, or whoever runs it as himself
	From   string         // the directory of a member

	Overdue Overdue      // is asked first by whatever changes a site; nil: nothing is, as by what is overdue itself
	Machine here.Machine // that is worked on; nil: this one
	Asker   Asker
	Watcher Watcher
}

// Live stands for the release that is live, whichever that is.
const Live = -1

// DefaultParallel is how many steps are under way at once. Steps mostly wait for disks and for
// systemd, so there are more of them than processors.
func DefaultParallel() int { return max(8, 4*runtime.NumCPU()) }

// Who names the person who runs Orrery, through sudo.
func Who() string {
	if name := os.Getenv("SUDO_USER"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return fmt.Sprint(os.Getuid())
}

// Register returns what is known of sites on this machine.
func (c *Session) Register() register.Register {
	return register.Register{Dirs: c.Dirs, Known: c.Known}
}
