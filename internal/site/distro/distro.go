// Package distro describes the Linux distributions that nodes can use.
// It covers their archives, how a base is created and what is in it, how packages are installed,
// and the init system that runs the services.
//
// Each Distribution has a file of its own with the settings that are specific to it (debian.go,
// ubuntu.go). It refers to Packages and Services, which several distributions may share: those of
// apt (apt.go, with its archives in sources.go) and those of systemd (systemd.go). These only
// contain commands and parsers for their output, and change nothing but a tree that the caller
// passes. The packages that build layers and configure nodes run the commands.
package distro

import (
	"slices"
	"strings"

	"orrery/internal/site"
	"orrery/internal/tree"
)

// A Distribution is a Linux distribution for nodes.
type Distribution struct {
	Name           string   // as in site files
	Title          string   // for messages
	Suites         []string // names of its releases in its archives
	SuiteAliases   []string // suites that point to another release from time to time
	WithoutPockets []string // suites without pockets
	Components     []string // default components of an image
	Keyring        string   // on a host that has it, the file with the keys that sign its archives
	Archive        site.Mirror
	Base           []string // packages in every base, which a node needs to boot, for access and for inspection
	Venv           string   // package that Python needs to create virtual environments
	SSH            string   // service of sshd
	Kernel         string   // package of the kernel that virtual machines boot
	FullKernel     string   // package of the kernel with drivers for real hardware, which QEMU emulates
	Packages       *Packages
	Services       *Services
}

// All lists the supported distributions. The first is the default.
var All = []*Distribution{Debian, Ubuntu}

// ByName returns the distribution called name, or nil.
func ByName(name string) *Distribution {
	if i := slices.IndexFunc(All, func(d *Distribution) bool { return d.Name == name }); i >= 0 {
		return All[i]
	}
	return nil
}

// ForImage returns the distribution of an image: the one that it names or, if it names none, the one with
// its suite.
func ForImage(i site.Image) *Distribution {
	if d := ByName(i.Distribution); d != nil {
		return d
	}
	for _, d := range All {
		if d.HasSuite(i.Suite) {
			return d
		}
	}
	return All[0]
}

// OrDefault returns the distribution with a recorded name. Records of earlier versions have none and get
// the default.
func OrDefault(name string) *Distribution { return ForImage(site.Image{Distribution: name}) }

// HasSuite reports whether a suite is one of the distribution's, or a pocket of one.
func (d *Distribution) HasSuite(suite string) bool {
	base, _, _ := strings.Cut(suite, "-")
	return slices.Contains(d.Suites, base) || slices.Contains(d.SuiteAliases, base)
}

// A File is a file that a system needs to run as a node.
type File struct {
	Path string
	Text string // content of a file, or target of a symbolic link
	Link bool
}

// Packages describes how packages are installed in a system. Commands run in the scratch container
// in which a layer is built. The program that creates a base is one of the host.
type Packages struct {
	Name  string // name of the package manager
	Tool  string // path of its program in a system
	Needs string // what a system must have, for messages

	Maker     string // program of the host that creates a base
	GetMaker  string // cure if the host lacks Maker
	Unreached string // cure if archives are unreachable

	// Make returns the command that creates a base, and the files in the build directory that it
	// reads.
	Make func(b *Bootstrap) (files map[string]string, args []string)
	// SourcesCommand returns a command that prints everything that package lists depend on.
	SourcesCommand func(dir string) []string
	// Program returns the first words of each command below. The command uses the package lists
	// with this key in the container's build directory.
	Program                func(dir, key string) []string
	Update, Fetch, Install []string
	// InPlace returns the commands that install packages in a running system from its own package
	// sources.
	InPlace func(names []string) [][]string
	// Offered returns a command that prints the versions of packages in the archives. Download
	// returns a command that downloads packages to a directory.
	Offered  func(program, names []string) []string
	Download func(program []string, directory string, names []string) []string
	// Candidate returns a command that prints the versions of packages that would be installed. Has
	// is a command that prints the installed packages. See Relations.
	Candidate func(program, names []string) []string
	Has       []string
	// Machine lists the packages that a system with its own kernel needs and a container does not.
	// OfKernel reports whether a package is part of a kernel.
	Machine  []string
	OfKernel func(name string) bool
	// File returns the name of the file that Download creates for a package. Unpack returns a
	// command that extracts such files without running any of their programs. It also prepares the
	// kernel's modules. Unpacked returns the packages that were installed in this way, as
	// NAME=VERSION.
	File     func(p map[string]string) string
	Unpack   func(files []string) []string
	Unpacked func(system *tree.Root) ([]string, error)
	// In returns the files that configure downloads in a scratch container, and the environment
	// variables that point to them.
	In func(s *Scratch) (files map[string]string, environ []string)
	// ^ Outdated are outputs of a failed command for which fresh package lists may help. Unknown
	// are outputs that mean that a package does not exist.
	Outdated, Unknown []string
	// Installed returns the installed packages of a system, as NAME=VERSION.
	Installed func(system *tree.Root) ([]string, error)

	Sources    string   // file of a system with its package sources
	More       string   // directory with more such files
	Keys       string   // directory for keys that sign archives
	Trusted    string   // pattern for files of the host with keys that it trusts for all archives
	Guard      File     // keeps services from starting while their packages are installed
	Fittings   []File   // in every base
	Volatile   []string // directories whose content is removed
	Leavings   []string // patterns for temporary files
	FromMaking []string // files that the creation of a base leaves behind
}

// A Bootstrap describes a base to create, in a scratch container with programs of the host.
type Bootstrap struct {
	Suite    string
	Packages []string
	BuildDir string   // directory of the container only for the build
	Access   []string // settings of the package manager, such as proxies
	Sources  string   // lines of package sources
	Tree     string   // target directory in the container, empty
}

// A Scratch is a container in which a layer is built.
type Scratch struct {
	BuildDir string   // directory only for the build
	Access   []string // settings of the package manager, such as proxies
	Sources  string   // lines of package sources, or "" for the system's own
	Alone    bool     // ignore all other sources of the system
}

// Services describes the init system that runs the services of a node. So far there is only
// systemd. Commands run in the node or in the scratch container. The names of services are appended
// to commands that act on services.
type Services struct {
	Name  string
	Init  []string // possible paths of its program in a system
	Users []string // command that creates the users declared by packages and roles

	// Awaited is a command that waits until the system has booted. It prints the result, and fails
	// if a service failed.
	Awaited []string
	Partly  string   // output of Awaited if some services failed
	Deaf    []string // outputs of Awaited before it accepts commands
	Broken  []string // command that prints the failed services
	Pending []string // command that prints the pending jobs
	OnBoot  []string // command that enables services of a layer at boot
	NotOn   []string // command that disables them at boot

	Start, Stop, Restart []string
	// Enable starts services at each boot, Begin also at once; End disables and stops them
	Enable, Begin, End []string
	// Unmask allows services to start again; Forgive resets their failure counts
	Unmask, Forgive []string

	Renew   []string // Enable and Restart; reports services that do not start
	Active  []string // prints the state of each service; fails unless they run
	Failed  []string // prints GivenUp for each service that will not be restarted
	GivenUp string
	Show    []string // prints the input of Conditions

	// LastSaid returns a command that prints the last output lines of a service.
	LastSaid func(service string) []string
	// Conditions parses the states of services. A service in the desired state has no Problem.
	Conditions func(said string) []UnitState
	// Launches parses the same output for how services were started. It skips services without this
	// information.
	Launches func(said string) []StartInfo
	// Disable removes a service from those that start at boot, in a node that is not running.
	Disable func(system *tree.Root, service string) error
	// StartsWith returns the file that makes a service start at boot.
	StartsWith func(service string) File

	Fittings []File // in every base
}

// A UnitState is the state of a service that should be running and enabled.
type UnitState struct {
	Problem UnitProblem
	Found   string // description
}

// A StartInfo describes how a service was started.
type StartInfo struct {
	Unproven bool // it counts as started before it has shown that it works
	Restarts int  // how often it was restarted because it exited
}

// A UnitProblem is what is wrong with a service.
type UnitProblem string

// The faults. A service without a fault is running, is about to start, or has finished its work.
const (
	Missing    UnitProblem = "missing"
	NotRunning UnitProblem = "halted"
	Disabled   UnitProblem = "disabled"
)
