package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// copies are the programs that this process has copied to sealed memory. They are open as long as it lives.
var copies struct {
	sync.Mutex
	files map[string]*os.File
}

// Seal gives a path at which a copy of a program of LXC, in sealed memory, can be run while this process lives.
//
// Such a program does not run from its file: it copies itself to memory, seals the copy and runs that, so that no container can overwrite what
// enters it (CVE-2019-5736). Sealing fails with EBUSY while the kernel still uses a page of the copy, as happens on a busy host, and then the
// program aborts. One that finds itself in sealed memory goes on at once. So the copy is made here, once, and sealing is tried again.
func Seal(program string) (path string, err error) {
	copies.Lock()
	defer copies.Unlock()
	file := copies.files[program]
	if file == nil {
		if file, err = sealedCopy(program); err != nil {
			return "", err
		}
		if copies.files == nil {
			copies.files = map[string]*os.File{}
		}
		copies.files[program] = file
	}
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), file.Fd()), nil
}

// seals are those for which LXC looks (LXC_MEMFD_SEALS in its source).
const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE

func sealedCopy(program string) (*os.File, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, problem.New(problem.Unable, "%s is not installed on this host", program).
			Try("apt-get install lxc; orrery doctor tells what else is missing")
	}
	from, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer from.Close() //nolint:errcheck // it is only read
	fd, err := unix.MemfdCreate(program, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	to := os.NewFile(uintptr(fd), program)
	// Read and written, not spliced: no page of the file is lent to the copy.
	if _, err := io.Copy(struct{ io.Writer }{to}, struct{ io.Reader }{from}); err != nil {
		return nil, errors.Join(err, to.Close())
	}
	for try := 0; ; try++ {
		_, err := unix.FcntlInt(to.Fd(), unix.F_ADD_SEALS, seals)
		if err == nil {
			return to, nil
		}
		if !errors.Is(err, unix.EBUSY) || try == 50 {
			return nil, errors.Join(os.NewSyscallError("seal the copy of "+program, err), to.Close())
		}
		time.Sleep(10 * time.Millisecond)
	}
}
