// Package facts reads the facts of a host that affect a measurement: kernel, processors, clock,
// memory, settings, interfaces and disks. It is kept in a bundle as facts.json, so that a reader
// years later knows what the figures are of, and package suspect judges them.
//
// `orrery doctor` (package host) asks another question, whether nodes run here, and answers in
// words; here are the values. What a host does not tell is left out: no fact is guessed.
package facts

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// Facts are those of one host.
type Facts struct {
	Taken      time.Time         `json:"taken"`
	Host       string            `json:"host"` // its name
	Kernel     Kernel            `json:"kernel"`
	Processors Processors        `json:"processors"`
	NUMA       []NUMA            `json:"numa,omitempty"`
	Memory     Memory            `json:"memory"`
	Clock      Clock             `json:"clock"`
	Mitigation map[string]string `json:"mitigation,omitempty"` // by vulnerability, as the kernel words it
	Sysctls    map[string]string `json:"sysctls,omitempty"`
	Virtual    Virtual           `json:"virtual"`
	Interfaces []Interface       `json:"interfaces,omitempty"`
	Blocks     []Block           `json:"blocks,omitempty"`
	Directory  *Directory        `json:"directory,omitempty"` // where disks are measured
	Cgroups    Cgroups           `json:"cgroups"`
	Netfilter  Netfilter         `json:"netfilter"`
	Load       []float64         `json:"load,omitempty"` // means over 1, 5 and 15 minutes
}

// Options say what to look at.
type Options struct {
	Dir        string   // on the disk that is measured; a file that vanishes is written there. "": none
	Interfaces []string // of the host; none: all of them
	Root       string   // where /proc, /sys and /etc are; "": "/". Another is not asked by system calls, only by files
}

// A host is what facts are read from.
type host struct {
	rootFiles
	proc procfs.FS
	live bool // it is this machine, which answers system calls
}

// Collect reads the facts of this host. What cannot be read is left out; there is an error only if
// there is no /proc or if the context ends.
func Collect(ctx context.Context, o Options) (Facts, error) {
	h := host{rootFiles: rootFiles{o.Root}, live: o.Root == "" || o.Root == "/"}
	if h.live {
		h.root = "/"
	}
	proc, err := procfs.NewFS(filepath.Join(h.root, "proc"))
	if err != nil {
		return Facts{}, problem.New(problem.Unable, "nothing can be read of this host").At("/proc").Because(err).
			Try("mount -t proc proc /proc")
	}
	h.proc = proc
	f := Facts{Taken: time.Now()}
	for _, look := range []func(*Facts){
		h.name, h.kernel, h.processors, h.numa, h.memory, h.clock, h.mitigation, h.sysctls, h.virtual, h.cgroups, h.load,
		h.blocks, h.netfilter,
		func(f *Facts) { f.Interfaces = h.interfaces(o.Interfaces) },
		func(f *Facts) { f.Directory = h.directory(o.Dir) },
	} {
		if err := ctx.Err(); err != nil {
			return f, problem.New(problem.Interrupted, "stopped while the facts of the host were read").Because(err)
		}
		look(&f)
	}
	return f, nil
}

func (h host) name(f *Facts) {
	f.Host = h.read("proc/sys/kernel/hostname")
	if f.Host == "" && h.live {
		f.Host, _ = os.Hostname()
	}
}

func (h host) load(f *Facts) {
	if l, err := h.proc.LoadAvg(); err == nil {
		f.Load = []float64{l.Load1, l.Load5, l.Load15}
	}
}

// Kernel is the running one, and what is around it.
type Kernel struct {
	Release      string `json:"release"`
	Version      string `json:"version,omitempty"`
	Machine      string `json:"machine,omitempty"`
	CommandLine  string `json:"command_line,omitempty"`
	Distribution string `json:"distribution,omitempty"`
	Preemption   string `json:"preemption,omitempty"` // as chosen at run time, where that can be read
	Tainted      string `json:"tainted,omitempty"`    // bits of proc_sys_kernel(5); "0": not
}

func (h host) kernel(f *Facts) {
	f.Kernel = Kernel{
		Release: h.read("proc/sys/kernel/osrelease"), Version: h.read("proc/sys/kernel/version"),
		CommandLine:  h.read("proc/cmdline"),
		Distribution: h.distribution(), Preemption: chosen(h.read("sys/kernel/debug/sched/preempt"), "(", ")"),
		Tainted: h.read("proc/sys/kernel/tainted"),
	}
	if h.live {
		var u unix.Utsname
		if unix.Uname(&u) == nil {
			f.Kernel.Machine = unix.ByteSliceToString(u.Machine[:])
		}
	}
}

// Clock is what the kernel tells time by. A virtual machine's, other than tsc, may leave it for each reading.
type Clock struct {
	Source    string   `json:"source,omitempty"`
	Available []string `json:"available,omitempty"`
}

// Virtual says whether something is below this host.
type Virtual struct {
	Machine   bool   `json:"machine"`             // it is a virtual one
	Kind      string `json:"kind,omitempty"`      // as /sys/hypervisor names it
	Vendor    string `json:"vendor,omitempty"`    // DMI
	Product   string `json:"product,omitempty"`   // DMI
	Container string `json:"container,omitempty"` // it is one itself, of this kind
}

// Cgroups are the versions that are mounted.
type Cgroups struct {
	Version     string   `json:"version,omitempty"` // "1", "2" or "1 and 2"
	Controllers []string `json:"controllers,omitempty"`
}
