// Package control is the operations of a site: what every face of Orrery, such as the command line, can do with it.
//
// A Session says for whom and about which site. Its methods are the operations: they look at the host, make a plan, get the consent that it needs
// from an Asker, carry the plan out while a Watcher is told how it goes, keep the journal, and give typed results. They print nothing,
// know no flags and read no terminal.
package control

import (
	"fmt"
	"os"
	"os/user"
	"runtime"

	"orrery/internal/control/here"
	"orrery/internal/control/register"
	"orrery/internal/member"
)

// A Session is the work of one caller with the sites of this host.
type Session struct {
	register.Register
	SiteDir string // the site directory that is meant; "": found
	Twin    string // the twin that is meant; "": the site itself
	Force   bool   // also what is somebody else's
	Patient bool   // wait for whoever else changes the site
	Late    bool   // it is about what is overdue, and does not ask what else is
	Release int    // of the nodes that are worked with; Live: of those that are live
	Command string // as the caller said it, for locks and the journal

	Member *member.Person // who calls without being root, through sudo; nil: root, or whoever runs it as himself
	From   string         // the directory of a member

	Machine here.Machine // that is worked on; nil: this one
	Asker   Asker
	Watcher Watcher
}

// Live stands for the release that is live, whichever that is.
const Live = -1

// DefaultParallel is how many steps are under way at once. Steps mostly wait for disks and for systemd, so there are more of them than processors.
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
