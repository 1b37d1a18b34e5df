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

// Arms are the program as it is for hosts: this very one, and those of other architectures that are
// beside it. The digests are made once.
type Arms struct {
	Self  string // the program; "": the one that runs
	Memos string // the directory in which digests are remembered; "": that of the user

	once sync.Once
	made []arm
	err  error
}

// An arm is the program for one architecture, with the one that virtual machines boot with, if that is there.
type arm struct {
	machine string // what uname calls it
	paths   []string
	sizes   [2]int64
	digest  string // of both, one after the other
}

// machines are the names of architectures, as Go has them and as uname does.
var machines = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// all returns those that there are.
func (a *Arms) all() ([]arm, error) {
	a.once.Do(func() { a.made, a.err = a.find() })
	return a.made, a.err
}

func (a *Arms) find() ([]arm, error) {
	self := a.Self
	if self == "" {
		self = "/proc/self/exe" // the file that runs, also if it has been replaced
	}
	guest, err := host.Beside(qemu.GuestName)
	paths := []string{self}
	if err == nil && a.Self == "" {
		paths = append(paths, guest)
	}
	first, err := a.armOf(machines[runtime.GOARCH], paths...)
	if err != nil {
		return nil, err
	}
	all := []arm{first}
	for arch, machine := range machines {
		if arch == runtime.GOARCH {
			continue
		}
		if path, err := host.Beside("orrery-" + arch); err == nil {
			other, err := a.armOf(machine, path)
			if err != nil {
				return nil, err
			}
			all = append(all, other)
		}
	}
	return all, nil
}

// armOf returns one. The digest of files that are as they were when it was last made is remembered:
// making it takes longer than many a login.
func (a *Arms) armOf(machine string, paths ...string) (arm, error) {
	made := arm{machine: machine, paths: paths}
	stamp, err := made.stamp()
	if err != nil {
		return made, err
	}
	if made.digest = a.recall(machine, stamp); made.digest != "" {
		return made, nil
	}
	if made, err = digested(machine, paths...); err != nil {
		return made, err
	}
	a.remember(machine, stamp, made.digest)
	return made, nil
}

// digested reads the files.
func digested(machine string, paths ...string) (arm, error) {
	a := arm{machine: machine, paths: paths}
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

// writeTo sends it.
func (a *arm) writeTo(to io.Writer) (sent int64, err error) {
	for i, path := range a.paths {
		f, err := os.Open(path)
		if err != nil {
			return sent, err
		}
		n, err := io.CopyN(to, f, a.sizes[i])
		f.Close() //nolint:errcheck // it was read
		sent += n
		if errors.Is(err, io.EOF) {
			return sent, problem.New(problem.Surprise, "this program changes while it is sent").At(path).Try("run it again")
		}
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}
