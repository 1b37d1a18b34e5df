package disk

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"time"

	"orrery/internal/engine/confine"
	"orrery/internal/host"
	"orrery/internal/host/cgroup"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// checking is how long an image of some length is checked at most before a machine has it. What is
// read are its tables, 64 KiB for each half GiB: a slow disk finds those of a TiB in half a minute.
// One that takes longer is not checked to its end: QEMU finds what is wrong when it comes upon it,
// and the machine stands still.
func checking(length int64) time.Duration {
	return 20*time.Second + time.Duration(length>>30)*60*time.Millisecond
}

// The ends of qemu-img check (qemu-img(1)) that are of no harm to the guest.
const (
	leaked = 3 // room in the file that nothing uses
	mute   = 63
)

// Check looks for damage in the tables of an image. It is done by qemu-img in a cell, as a user:
// what is wrong with it may have been made to harm who looks at it.
func (d *Disk) Check(ctx context.Context, cell confine.Cell, in cgroup.Group) error {
	if d.Drive.Disk != site.QCow2 {
		return nil
	}
	program, err := qemuImg.path()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return err
	}
	length, err := d.show(cell.User)
	if err != nil {
		return d.failed(err, "cannot be checked")
	}
	ctx, cancel := context.WithTimeout(ctx, checking(length))
	defer cancel()
	cmd := host.Program(ctx, program, "check", "-q", "--output=human", "-f", "qcow2", d.Path)
	cell.Sees = append(confine.QEMU(program), program, d.Path)
	if err := host.Apart(func() error { return cell.Start(cmd, in) }); err != nil {
		return d.failed(err, "cannot be checked")
	}
	err = cmd.Wait()
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil
	case err == nil || errors.As(err, &ended) && (ended.ExitCode() == leaked || ended.ExitCode() == mute):
		return nil
	}
	return problem.New(problem.Failed, "node %s: disk %s is damaged", d.Node, d.Drive.Name).At(d.Path).Because(err).
		Try("orrery snapshot restore puts an earlier one back; qemu-img check -r all %s mends what can be; or make node %s anew",
			d.Path, d.Node)
}

// show lets a user read the file, and gives its length: only root gets into the directory where it is.
func (d *Disk) show(user int) (length int64, err error) {
	f, err := d.Open()
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if err := f.Chown(0, user); err != nil {
		return 0, err
	}
	return info.Size(), f.Chmod(0o640)
}
