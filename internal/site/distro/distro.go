// Package distro describes the Linux distributions that nodes can use: how a base is made and from
// which archives, what is in it, how packages are installed, and what runs its services.
//
// A Distribution is a file of this package with nothing in it but what differs (debian.go,
// ubuntu.go). It names its Packages and its Services, which it may share with others: those of apt
// (apt.go, with its archives in sources.go) and those of systemd (systemd.go). They do nothing
// themselves but in a tree that they are given: they have the words of commands, and read what
// those print. Who builds layers or configures nodes runs them.
package distro

import (
	"slices"
	"strings"

	"orrery/internal/site"
	"orrery/internal/tree"
)

// A Distribution is one on which nodes can stand.
type Distribution struct {
	Name       string   // in site files
	Title      string   // in messages
	Suites     []string // its releases, by the names that its archives have
	Moving     []string // suites that are another release from time to time
	Unsettled  []string // suites without pockets
	Components []string // of a suite, where an image names none
	Keyring    string   // on a host that has it: what its archives are signed with
	Archive    site.Mirror
	Base       []string // packages in every base: what a node needs to boot, to be reached and to be looked at
	Venv       string   // the package by which Python makes virtual environments
	SSH        string   // the service of sshd
	Kernel     string   // the package with the kernel that virtual machines boot,
	FullKernel string   // and that with drivers of real hardware, which QEMU emulates
	Packages   *Packages
	Services   *Services
}

// All are the distributions that are known; the first is that of whatever does not say what it is.
var All = []*Distribution{Debian, Ubuntu}

// Named returns the distribution with a name; nil: there is none.
func Named(name string) *Distribution {
	if i := slices.IndexFunc(All, func(d *Distribution) bool { return d.Name == name }); i >= 0 {
		return All[i]
	}
	return nil
}

// Of returns the distribution of an image: the one that it names or, if it names none, the one that
// has its suite.
func Of(i site.Image) *Distribution {
	if d := Named(i.Distribution); d != nil {
		return d
	}
	for _, d := range All {
		if d.Has(i.Suite) {
			return d
		}
	}
	return All[0]
}

// Or returns the distribution with a name that is on record; records of former versions have none.
func Or(name string) *Distribution { return Of(site.Image{Distribution: name}) }

// Has reports whether a suite is one of the distribution's, or a pocket of one.
func (d *Distribution) Has(suite string) bool {
	base, _, _ := strings.Cut(suite, "-")
	return slices.Contains(d.Suites, base) || slices.Contains(d.Moving, base)
}

// A File is one that a system gets to be fit for being a node.
type File struct {
	Path string
	Text string // content; of a link: where it points
	Link bool
}

// Packages is how packages come into a system. Commands are run in the scratch container in which a
// layer is built. That which makes a base is a program of the host.
type Packages struct {
	Name  string // of the program
	Tool  string // the program, in a system
	Needs string // what of this a system must have

	Maker     string // the program of the host that makes a base
	GetMaker  string // cure, where the host has none
	Unreached string // cure, where archives are not reached

	// Make returns the command that makes a base, and files of the room for building that it reads.
	Make func(b *Bootstrap) (files map[string]string, args []string)
	// Told is a command that prints all on which package lists depend.
	Told func(room string) []string
	// Program begins each of the commands below: it has the lists with this key, in the directory of
	// the scratch that is for building only.
	Program                func(room, key string) []string
	Update, Fetch, Install []string
	// InPlace returns the commands that install packages in a running system, from its own package sources.
	InPlace func(names []string) [][]string
	// Offered returns a command that prints what the archives have of packages, Download one that puts packages
	// into a directory.
	Offered  func(program, names []string) []string
	Download func(program []string, directory string, names []string) []string
	// Candidate returns a command that prints what would be installed of packages. Has is one that prints what
	// is installed. See Relations.
	Candidate func(program, names []string) []string
	Has       []string
	// Machine are the packages that a system with a kernel of its own needs besides, and a container
	// does not; OfKernel tells the names of packages that are parts of a kernel.
	Machine  []string
	OfKernel func(name string) bool
	// File returns the name of the file that Download makes of a package. Unpack returns a command that unpacks
	// such files without running anything in them, and prepares the modules of the kernel among them. Unpacked
	// reads which packages came that way, NAME=VERSION.
	File     func(p map[string]string) string
	Unpack   func(files []string) []string
	Unpacked func(system *tree.Root) ([]string, error)
	// In returns the files by which packages are fetched in a scratch, and the variables that point to
	// these files.
	In func(s *Scratch) (files map[string]string, environ []string)
	// Outdated tells from what a command printed that fresh lists may help, Unknown that there is no such package.
	Outdated, Unknown []string
	// Installed reads the packages of a system, NAME=VERSION.
	Installed func(system *tree.Root) ([]string, error)

	Sources    string   // file of a system that says where its packages come from
	More       string   // directory with more of these
	Keys       string   // directory for what archives are signed with
	Trusted    string   // files of the host with keys that it trusts for all archives, as a pattern
	Guard      File     // which keeps services from starting while their packages are installed
	Fittings   []File   // in every base
	Volatile   []string // directories of which nothing is kept
	Leavings   []string // files that are of the moment, as patterns
	FromMaking []string // files that the making of a base leaves
}

// A Bootstrap is a base to be made, in a scratch container with programs of the host.
type Bootstrap struct {
	Suite    string
	Packages []string
	Room     string   // directory of the container that is for building only
	Access   []string // settings of the program that installs packages, for proxies and the like
	Sources  string   // lines of sources
	Tree     string   // directory of the container where it is to be; it is empty
}

// A Scratch is a container in which a layer is built.
type Scratch struct {
	Room    string   // its directory that is for building only
	Access  []string // settings of the program, for proxies and the like
	Sources string   // lines of sources; "": those of the system itself
	Alone   bool     // whatever else the system says of sources
}

// Services is who runs the services of a node: systemd, so far. Commands are run in the node, or in
// the scratch container; names of services are to be added to those that are for services.
type Services struct {
	Name  string
	Init  []string // where it is in a system; one of these
	Users []string // a command that makes the users that packages and roles declare

	// a command that waits until all that starts by itself has started, says how that went, and fails
	// unless it went well
	Awaited []string
	Partly  string   // what it says if some of it failed
	Deaf    []string // what it says while it takes no orders
	Broken  []string // a command that prints what failed
	Pending []string // a command that prints what is under way
	OnBoot  []string // for services in a layer: to start when a node boots
	NotOn   []string // not to start then

	Start, Stop, Restart []string
	Enable, Begin, End   []string // to start at each boot; the same and now; not any more, and to stop
	Unmask, Forgive      []string // to be startable again; how often they have failed is forgotten

	Renew   []string // Enable and Restart; what does not start is told of
	Failed  []string // prints GivenUp for each that will not be started again
	GivenUp string
	Show    []string // prints what Conditions reads

	// LastSaid returns a command that prints the last lines that a service has printed.
	LastSaid func(service string) []string
	// Conditions reads how services are; one that is as it is to be has no Fault.
	Conditions func(said string) []Condition
	// Launches reads from the same how services were started; those of which nothing is said are left out.
	Launches func(said string) []Launch
	// Disable lets a service not start when a node boots that does not run now.
	Disable func(system *tree.Root, service string) error
	// StartsWith returns the file that makes a service start when a node boots.
	StartsWith func(service string) File

	Fittings []File // in every base
}

// A Condition is how a service is that is to run and to be enabled.
type Condition struct {
	Fault Fault
	Found string // in words
}

// A Launch is how a service was started.
type Launch struct {
	Unproven bool // it counts as started before it has shown that it works
	Restarts int  // how often it was started again because it ended
}

// A Fault is what is wrong with a service.
type Fault string

// The faults. A service without one runs, is about to, or has done what it is for.
const (
	Missing  Fault = "missing"
	Halted   Fault = "halted"
	Disabled Fault = "disabled"
)
