package xen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/vm"
	"orrery/internal/host"
	"orrery/internal/host/process"
	"orrery/internal/host/xl"
	"orrery/internal/problem"
	"orrery/internal/tree"
)

// taken is vm.Machine.Memory while a domain goes on from it: a state is used once, because what is on
// the disk of the guest is of that moment only once.
func (m machine) taken() string { return m.File("memory.taken") }

// saving is a file that is there while Xen's toolstack writes the state of a domain. It goes on
// when we are killed.
func (m machine) saving() string { return m.File("saving") }

// writing is how long the toolstack may take to write a state.
const writing = 15 * time.Minute

// Remember writes the state of a domain that stands still. Its guest's kernel has to work for that,
// and so it goes on, for as long as that takes: then it is paused until Thaw.
func (e *Engine) Remember(ctx context.Context, ref engine.Ref, file string) error {
	m := e.machine(ref)
	r, err := e.Record(ref)
	if err != nil {
		return err
	}
	if !r.Imported() {
		return problem.New(problem.Unable,
			"the memory of node %s cannot be kept: its root is a directory of this host, which its kernel has by 9p, and Linux cannot save a 9p device",
			ref.Name).
			At(m.Path()).Try(`take the snapshot without --memory; or let the node boot a disk: [image.NAME] import = "FILE.qcow2"`)
	}
	if err := m.remember(ctx, r, file); err != nil {
		err = errors.Join(err, os.RemoveAll(file))
		return m.MemoryProblem(err)
	}
	return nil
}

func (m machine) remember(ctx context.Context, r *nodedir.Record, file string) error {
	if err := os.WriteFile(m.saving(), nil, 0o600); err != nil {
		return err
	}
	if err := m.Group().SetFrozen(false); err != nil {
		return err
	}
	if err := m.Group().AwaitFrost(ctx, false); err != nil {
		return err
	}
	if err := m.unpause(ctx); err != nil {
		return err
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil { // the toolstack would let others read it
		return err
	}
	if err := m.save(file, vm.MaxStateBytes(&r.Node)); err != nil {
		return err
	}
	if err := m.drain(ctx); err != nil {
		return fmt.Errorf("what its QEMU has in memory is not written: %w", err)
	}
	if _, err := saved(file); err != nil {
		return err
	}
	return os.Remove(m.saving())
}

// save lets the toolstack write the state, and no more of it than there can be. The toolstack is
// not ended when we are: a guest that it has suspended would never go on.
func (m machine) save(file string, most int64) error {
	program, err := xl.Program()
	if err != nil {
		return err
	}
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		return problem.New(problem.Unable, "prlimit is not installed on this host").Try("install the package util-linux")
	}
	patient, cancel := context.WithTimeoutCause(context.Background(), writing,
		fmt.Errorf("it has not ended within %v", writing))
	defer cancel()
	args := []string{"save", "-p", m.domain(), file}
	said := &host.Tail{}
	cmd := host.Program(patient, prlimit, append([]string{fmt.Sprintf("--fsize=%d", most), "--core=0", "--", program},
		args...)...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = said, said, "/"
	if err := m.Group().Start(cmd); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		if patient.Err() != nil {
			err = context.Cause(patient)
		}
		return xl.Failed(args, said.String(), err)
	}
	return nil
}

// monitor connects to the monitor of a domain's QEMU.
func (m machine) monitor(ctx context.Context) (*qmp.Client, error) {
	path, err := xl.Monitor(ctx, m.domain())
	if err != nil {
		return nil, err
	}
	return qmp.Dial(ctx, path)
}

// drain lets the QEMU of a domain that is paused write what it keeps in memory of its disks: the
// guest that goes on from the state has seen it written. A QEMU whose machine stops does so
// (vm_stop).
func (m machine) drain(ctx context.Context) error {
	q, err := m.monitor(ctx)
	if err != nil {
		return err
	}
	defer q.Close() //nolint:errcheck // it has answered
	for _, command := range []string{"stop", "cont"} {
		if err := q.Do(ctx, command, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// saver returns the process of the toolstack that writes the state of a domain; 0 if there is none.
func (m machine) saver() int {
	for _, pid := range m.Group().Processes() {
		line, err := os.ReadFile(process.Host.File(pid, "cmdline"))
		words := strings.Split(string(line), "\x00")
		if err == nil && len(words) > 1 && filepath.Base(words[0]) == "xl" && slices.Contains(words[1:], "save") {
			return pid
		}
	}
	return 0
}

// endSaving waits until the toolstack has written a state that nobody waits for any more. A guest
// that it has suspended, and not let go, goes on if this version of it can let it; else it is
// ended, as by a power cut: nobody has its state.
func (e *ending) endSaving(ctx context.Context, m machine) error {
	if m.Group().Frozen() {
		if err := m.Group().SetFrozen(false); err != nil {
			return err
		}
	}
	for m.saver() != 0 {
		if err := host.Pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	if m.running() {
		all, err := xl.Domains(ctx)
		if err != nil {
			return err
		}
		if down(all, m.domain()) && xl.Do(ctx, "resume", m.domain()) != nil {
			return e.end(ctx, m)
		}
	}
	return os.RemoveAll(m.saving())
}

// Recall lets a node go on from a state when it is started next; "": it boots.
func (e *Engine) Recall(ref engine.Ref, file string) error { return e.machine(ref).Recall(file) }

// take takes the state from which a domain is to go on; "": it boots. It is to be that of this very
// domain, whoever has put it there.
func (m machine) take() (string, error) {
	err := os.Rename(m.Memory(), m.taken())
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	of, err := saved(m.taken())
	if err == nil && of.Name != m.domain() {
		err = fmt.Errorf("it is that of %q", of.Name)
	}
	if err != nil {
		return "", problem.New(problem.Failed, "the state from which node %s is to go on is damaged", m.Ref.Name).
			At(m.taken()).Because(err).
			Try("start the node once more: then it boots")
	}
	return m.taken(), nil
}

// saved tells whose state is in a file, which is one and nothing else.
func saved(file string) (*xl.Details, error) {
	f, err := tree.OpenFile(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return xl.ParseSaved(f)
}
