package reach

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"runtime"
	"sync"

	"orrery/internal/host"
	"orrery/internal/host/qemu"
	"orrery/internal/problem"
)

// Builds finds the builds of this program that hosts need: the running one, and those of other
// architectures that are beside it. It computes their digests once.
type Builds struct {
	Self  string // path of the program, or "" for the running one
	Memos string // directory in which digests are cached, or "" for the user's cache

	once sync.Once
	made []build
	err  error
}

// A build is this program for one architecture, with the program that virtual machines boot, if
// there is one.
type build struct {
	machine string // architecture, as uname prints it
	paths   []string
	sizes   [2]int64
	digest  string // of both programs, one after the other
}

// machines maps the architecture names of Go to those of uname.
var machines = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// all returns the builds that exist.
func (a *Builds) all() ([]build, error) {
	a.once.Do(func() { a.made, a.err = a.find() })
	return a.made, a.err
}

func (a *Builds) find() ([]build, error) {
	self := a.Self
	if self == "" {
		self = "/proc/self/exe" // the file that runs, even if it has been replaced
	}
	guest, err := host.FindTool(qemu.GuestName)
	paths := []string{self}
	if err == nil && a.Self == "" {
		paths = append(paths, guest)
	}
	first, err := a.buildFor(machines[runtime.GOARCH], paths...)
	if err != nil {
		return nil, err
	}
	all := []build{first}
	for arch, machine := range machines {
		if arch == runtime.GOARCH {
			continue
		}
		if path, err := host.FindTool("orrery-" + arch); err == nil {
			other, err := a.buildFor(machine, path)
			if err != nil {
				return nil, err
			}
			all = append(all, other)
		}
	}
	return all, nil
}

// buildFor returns the build for one architecture. The digest of unchanged files comes from a cache,
// because computing it takes longer than many a login.
func (a *Builds) buildFor(machine string, paths ...string) (build, error) {
	made := build{machine: machine, paths: paths}
	stamp, err := made.version()
	if err != nil {
		return made, err
	}
	if made.digest = a.loadDigest(machine, stamp); made.digest != "" {
		return made, nil
	}
	if made, err = hashBuild(machine, paths...); err != nil {
		return made, err
	}
	a.storeDigest(machine, stamp, made.digest)
	return made, nil
}

// hashBuild reads the files and computes their sizes and digest.
func hashBuild(machine string, paths ...string) (build, error) {
	a := build{machine: machine, paths: paths}
	sum := sha256.New()
	for i, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return a, err
		}
		a.sizes[i], err = io.Copy(sum, f)
		f.Close() //nolint:errcheck // it was read
		if err != nil {
			return a, err
		}
	}
	a.digest = hex.EncodeToString(sum.Sum(nil))
	return a, nil
}

// writeTo sends the programs, one after the other.
func (a *build) writeTo(to io.Writer) (sent int64, err error) {
	for i, path := range a.paths {
		f, err := os.Open(path)
		if err != nil {
			return sent, err
		}
		n, err := io.CopyN(to, f, a.sizes[i])
		f.Close() //nolint:errcheck // it was read
		sent += n
		if errors.Is(err, io.EOF) {
			return sent, problem.New(problem.Surprise, "this program changed while it was sent").At(path).Try("run it again")
		}
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}
