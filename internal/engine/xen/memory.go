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

// loadingFile returns the path to which vm.Machine.Memory is moved while a domain loads it. A state is
// used only once, because the guest's disk matches it only once.
func (m machine) loadingFile() string { return m.File("memory.taken") }

// savingFile returns the path of a file that exists while Xen's toolstack writes the state of a domain.
// The toolstack continues if this program is killed.
func (m machine) savingFile() string { return m.File("saving") }

// saveTimeout limits how long the toolstack may take to write a state.
const saveTimeout = 15 * time.Minute

// SaveMemory saves the state of a frozen domain. The guest's kernel must run for that, so the domain
// is thawed for the duration. Then it stays paused until Thaw.
func (e *Engine) SaveMemory(ctx context.Context, ref engine.Ref, file string) error {
	m := e.machine(ref)
	r, err := e.Record(ref)
	if err != nil {
		return err
	}
	if !r.Imported() {
		return problem.New(problem.Unable,
			"the memory of node %s cannot be saved: its root is on 9p, and Linux cannot save a 9p device",
			ref.Name).
			At(m.Path()).Try(`take the snapshot without --memory; or let the node boot a disk: [image.NAME] import = "FILE.qcow2"`)
	}
	if err := m.saveMemory(ctx, r, file); err != nil {
		err = errors.Join(err, os.RemoveAll(file))
		return m.MemoryProblem(err)
	}
	return nil
}

func (m machine) saveMemory(ctx context.Context, r *nodedir.Record, file string) error {
	if err := os.WriteFile(m.savingFile(), nil, 0o600); err != nil {
		return err
	}
	if err := m.Group().SetFrozen(false); err != nil {
		return err
	}
	if err := m.Group().WaitFrozen(ctx, false); err != nil {
		return err
	}
	if err := m.unpause(ctx); err != nil {
		return err
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil { // the toolstack would make it readable for others
		return err
	}
	if err := m.save(file, vm.MaxStateBytes(&r.Node)); err != nil {
		return err
	}
	if err := m.drain(ctx); err != nil {
		return fmt.Errorf("the memory of its QEMU was not written: %w", err)
	}
	if _, err := readDetails(file); err != nil {
		return err
	}
	return os.Remove(m.savingFile())
}

// save makes the toolstack write the state, up to most bytes. The toolstack does not end with this
// program, because a guest that it has suspended would never resume.
func (m machine) save(file string, most int64) error {
	program, err := xl.Program()
	if err != nil {
		return err
	}
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		return problem.New(problem.Unable, "prlimit is not installed on this host").Try("install the package util-linux")
	}
	patient, cancel := context.WithTimeoutCause(context.Background(), saveTimeout,
		fmt.Errorf("it has not finished within %v", saveTimeout))
	defer cancel()
	args := []string{"save", "-p", m.domain(), file}
	said := &host.TailBuffer{}
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
	path, err := xl.MonitorSocket(ctx, m.domain())
	if err != nil {
		return nil, err
	}
	return qmp.Dial(ctx, path)
}

// drain makes the QEMU of a paused domain write its cached disk data, because the guest in the
// saved state believes it written. QEMU writes it when its machine stops (vm_stop).
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

// saverPID returns the process id of the toolstack that writes the state of a domain, or 0 if there is
// none.
func (m machine) saverPID() int {
	for _, pid := range m.Group().Processes() {
		line, err := os.ReadFile(process.Host.File(pid, "cmdline"))
		words := strings.Split(string(line), "\x00")
		if err == nil && len(words) > 1 && filepath.Base(words[0]) == "xl" && slices.Contains(words[1:], "save") {
			return pid
		}
	}
	return 0
}

// endSaving waits until the toolstack has finished writing a state for a killed run. If it has
// suspended the guest and not resumed it, endSaving resumes the guest. If the toolstack cannot
// resume it, endSaving ends the domain, as a power cut would, because its state is lost.
func (e *terminator) endSaving(ctx context.Context, m machine) error {
	if m.Group().Frozen() {
		if err := m.Group().SetFrozen(false); err != nil {
			return err
		}
	}
	for m.saverPID() != 0 {
		if err := host.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	if m.running() {
		all, err := xl.Domains(ctx)
		if err != nil {
			return err
		}
		if hasShutDown(all, m.domain()) && xl.Run(ctx, "resume", m.domain()) != nil {
			return e.kill(ctx, m)
		}
	}
	return os.RemoveAll(m.savingFile())
}

// ResumeFrom makes the next start of a node resume from a state, or boot if file is "".
func (e *Engine) ResumeFrom(ref engine.Ref, file string) error {
	return e.machine(ref).ResumeFrom(file)
}

// takeState returns the state from which a domain must resume, or "" if it must boot. It returns a
// problem unless the state is of this very domain.
func (m machine) takeState() (string, error) {
	err := os.Rename(m.Memory(), m.loadingFile())
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	of, err := readDetails(m.loadingFile())
	if err == nil && of.Name != m.domain() {
		err = fmt.Errorf("it belongs to %q", of.Name)
	}
	if err != nil {
		return "", problem.New(problem.Failed, "the saved state of node %s is damaged", m.Ref.Name).
			At(m.loadingFile()).Because(err).
			Try("start the node again: it boots without the saved state")
	}
	return m.loadingFile(), nil
}

// readDetails returns whose state is in a file. It returns an error if the file is not a valid state.
func readDetails(file string) (*xl.Details, error) {
	f, err := tree.OpenFile(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return xl.ParseSaved(f)
}
