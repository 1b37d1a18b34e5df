package disk

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"time"

	"orrery/internal/engine/cgroup"
	"orrery/internal/engine/confine"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// checking bounds how long an image is checked before a machine has it. A larger one than can be checked in that time is not checked to its end: QEMU finds what is
// wrong when it comes upon it, and the machine stands still.
const checking = 20 * time.Second

// The ends of qemu-img check (qemu-img(1)) that are of no harm to the guest.
const (
	leaked = 3 // room in the file that nothing uses
	mute   = 63
)

// Check looks for damage in the tables of an image. It is done by qemu-img in a cell, as a user: what is wrong with it may have been made to harm who looks at it.
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
	if err := d.show(cell.User); err != nil {
		return d.failed(err, "cannot be checked")
	}
	ctx, cancel := context.WithTimeout(ctx, checking)
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
		Try("orrery snapshot restore puts an earlier one back; qemu-img check -r all %s mends what can be; or make node %s anew", d.Path, d.Node)
}

// show lets a user read the file: only root gets into the directory where it is.
func (d *Disk) show(user int) error {
	f, err := d.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Chown(0, user); err != nil {
		return err
	}
	return f.Chmod(0o640)
}
