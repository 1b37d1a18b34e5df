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

// checkTimeout returns the time limit for checking an image of some length before a machine uses it.
// The check reads the image's tables, 64 KiB for each half GiB. A slow disk reads those of a TiB in
// half a minute. If the check takes longer, it is skipped, and QEMU stops the machine if it finds
// damage later.
func checkTimeout(length int64) time.Duration {
	return 20*time.Second + time.Duration(length>>30)*60*time.Millisecond
}

// Exit statuses of qemu-img check (qemu-img(1)) that mean no harm for the guest.
const (
	exitLeaked      = 3 // unused clusters in the file
	exitUnsupported = 63
)

// Check looks for damage in the tables of an image. It runs qemu-img confined and as the sandbox's
// user, because the image may have been damaged to attack the program that reads it.
func (d *Disk) Check(ctx context.Context, cell confine.Sandbox, in cgroup.Group) error {
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
	length, err := d.makeReadable(cell.User)
	if err != nil {
		return d.failed(err, "cannot be checked")
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout(length))
	defer cancel()
	cmd := host.Program(ctx, program, "check", "-q", "--output=human", "-f", "qcow2", d.Path)
	cell.Sees = append(confine.QEMUPaths(program), program, d.Path)
	if err := host.OnLockedThread(func() error { return cell.Start(cmd, in) }); err != nil {
		return d.failed(err, "cannot be checked")
	}
	err = cmd.Wait()
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil
	case err == nil || errors.As(err, &ended) && (ended.ExitCode() == exitLeaked || ended.ExitCode() == exitUnsupported):
		return nil
	}
	return problem.New(problem.Failed, "node %s: disk %s is damaged", d.Node, d.Drive.Name).At(d.Path).Because(err).
		Try("orrery snapshot restore restores an earlier one; qemu-img check -r all %s repairs what it can; or recreate node %s",
			d.Path, d.Node)
}

// makeReadable lets a user read the file, and returns its length. Only root can enter the file's directory.
func (d *Disk) makeReadable(user int) (length int64, err error) {
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
