// Package facts reads the facts of a host that affect a measurement.
//
// They are about kernel, processors, clock, memory, settings, interfaces and disks. The bundle
// stores them as facts.json, so that readers years later know what the figures refer to. Package
// suspect judges them.
//
// `orrery doctor` (package host) answers another question, whether nodes can run here. This package
// returns only values. If a host does not provide a fact, it is omitted and not guessed.
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

// Facts are the facts of one host.
type Facts struct {
	Taken      time.Time         `json:"taken"`
	Host       string            `json:"host"` // its name
	Kernel     Kernel            `json:"kernel"`
	Processors Processors        `json:"processors"`
	NUMA       []NUMA            `json:"numa,omitempty"`
	Memory     Memory            `json:"memory"`
	Clock      Clock             `json:"clock"`
	Mitigation map[string]string `json:"mitigation,omitempty"` // by vulnerability, in the kernel's words
	Sysctls    map[string]string `json:"sysctls,omitempty"`
	Virtual    Virtual           `json:"virtual"`
	Interfaces []Interface       `json:"interfaces,omitempty"`
	Blocks     []Block           `json:"blocks,omitempty"`
	Directory  *Directory        `json:"directory,omitempty"` // where disks are measured
	Cgroups    Cgroups           `json:"cgroups"`
	Netfilter  Netfilter         `json:"netfilter"`
	Load       []float64         `json:"load,omitempty"` // means over 1, 5 and 15 minutes
}

// Options select what to read.
type Options struct {
	Dir        string   // on the measured disk, where a temporary file is written, or "" for none
	Interfaces []string // interfaces of the host, or none for all
	Root       string   // directory of /proc, /sys and /etc, or "" for "/"; for any other, no system calls are used
}

// A host is the source of facts.
type host struct {
	rootFiles
	proc procfs.FS
	live bool // it is this machine, so system calls can be used
}

// Collect reads the facts of this host. Facts that cannot be read are omitted. It returns an error
// only if there is no /proc or if the context ends.
func Collect(ctx context.Context, o Options) (Facts, error) {
	h := host{rootFiles: rootFiles{o.Root}, live: o.Root == "" || o.Root == "/"}
	if h.live {
		h.root = "/"
	}
	proc, err := procfs.NewFS(filepath.Join(h.root, "proc"))
	if err != nil {
		return Facts{}, problem.New(problem.Unable, "the facts of this host cannot be read").At("/proc").Because(err).
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
			return f, problem.New(problem.Interrupted, "cancelled while the facts of the host were read").Because(err)
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

// Kernel describes the running kernel and its environment.
type Kernel struct {
	Release      string `json:"release"`
	Version      string `json:"version,omitempty"`
	Machine      string `json:"machine,omitempty"`
	CommandLine  string `json:"command_line,omitempty"`
	Distribution string `json:"distribution,omitempty"`
	Preemption   string `json:"preemption,omitempty"` // as selected at run time, if it can be read
	Tainted      string `json:"tainted,omitempty"`    // bits as in proc_sys_kernel(5); "0" if not tainted
}

func (h host) kernel(f *Facts) {
	f.Kernel = Kernel{
		Release: h.read("proc/sys/kernel/osrelease"), Version: h.read("proc/sys/kernel/version"),
		CommandLine:  h.read("proc/cmdline"),
		Distribution: h.distribution(), Preemption: selectedWord(h.read("sys/kernel/debug/sched/preempt"), "(", ")"),
		Tainted: h.read("proc/sys/kernel/tainted"),
	}
	if h.live {
		var u unix.Utsname
		if unix.Uname(&u) == nil {
			f.Kernel.Machine = unix.ByteSliceToString(u.Machine[:])
		}
	}
}

// Clock is the kernel's clock source. Reading one other than tsc may cause an exit from a virtual
// machine.
type Clock struct {
	Source    string   `json:"source,omitempty"`
	Available []string `json:"available,omitempty"`
}

// Virtual describes the virtualization of this host.
type Virtual struct {
	Machine   bool   `json:"machine"`             // it is a virtual machine
	Kind      string `json:"kind,omitempty"`      // name in /sys/hypervisor
	Vendor    string `json:"vendor,omitempty"`    // from DMI
	Product   string `json:"product,omitempty"`   // from DMI
	Container string `json:"container,omitempty"` // kind of container, if this host is one
}

// Cgroups describes the mounted cgroup versions.
type Cgroups struct {
	Version     string   `json:"version,omitempty"` // "1", "2" or "1 and 2"
	Controllers []string `json:"controllers,omitempty"`
}
