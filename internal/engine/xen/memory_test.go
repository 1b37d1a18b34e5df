package xen

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// aState returns a file with the beginning of a domain's state as xl writes it. Only xl reads more.
func aState(t *testing.T, domain string) string {
	t.Helper()
	config := `{"c_info": {"type": "pv", "name": "` + domain + `"}}`
	text := []byte("Xen saved domain, xl format\n \x00 \r")
	for _, n := range []int{0x01020304, 3, 0, 4 + len(config), len(config)} {
		text = binary.LittleEndian.AppendUint32(text, uint32(n))
	}
	path := filepath.Join(t.TempDir(), "state")
	must(t, os.WriteFile(path, append(append(text, config...), "LibxlFmt"...), 0o600))
	return path
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestRememberWhat: for a node with a 9p root, SaveMemory returns why its memory cannot be saved and
// what to do, without asking Xen.
func TestRememberWhat(t *testing.T) {
	e, m, asked := ground(t, "")
	file := filepath.Join(t.TempDir(), "memory")
	err := e.SaveMemory(t.Context(), m.Ref, file)
	if problem.ExitCode(err) != int(problem.Unable) || !strings.Contains(err.Error(), "9p") ||
		!strings.Contains(err.Error(), "import = ") || asked() != "" || exists(file) {
		t.Errorf("%v; xl is asked: %s", err, asked())
	}
}

// TestRecall: a state is used once, and only if it is of the very domain; a state that was not
// wanted after all, or has been used by a run that was killed, never.
//
// Promise (Virtual machines): The memory of a guest of Xen continues only as that guest, and once.
// With host/xl.TestSaved.
func TestRecall(t *testing.T) {
	e, m, _ := ground(t, "")
	must(t, e.ResumeFrom(m.Ref, aState(t, m.domain())))
	if got, err := m.takeState(); err != nil || got != m.loadingFile() || exists(m.Memory()) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := m.takeState(); err != nil || got != "" {
		t.Errorf("it is used once more: %q, %v", got, err)
	}
	must(t, e.kill(t.Context(), m))
	if exists(m.loadingFile()) {
		t.Error("the state of a run that was killed is left")
	}
	must(t, e.ResumeFrom(m.Ref, aState(t, m.domain())))
	must(t, e.ResumeFrom(m.Ref, ""))
	if got, err := m.takeState(); err != nil || got != "" {
		t.Errorf("it was taken back: %q, %v", got, err)
	}
	must(t, e.ResumeFrom(m.Ref, aState(t, "orrery-unit-xen-8")))
	if _, err := m.takeState(); problem.ExitCode(err) != int(problem.Failed) ||
		!strings.Contains(err.Error(), `it belongs to "orrery-unit-xen-8"`) {
		t.Errorf("another's: %v", err)
	}
	if got, err := m.takeState(); err != nil || got != "" {
		t.Errorf("after that it boots: %q, %v", got, err)
	}
}

// TestSweepSaving: a sweep repairs what a run that was killed while saving a state has left, even
// if the node no longer runs.
func TestSweepSaving(t *testing.T) {
	e, m, asked := ground(t, "")
	must(t, os.WriteFile(m.savingFile(), nil, 0o600))
	must(t, e.Sweep(t.Context(), "unit-xen"))
	if exists(m.savingFile()) || asked() != "" {
		t.Errorf("it is left: %v; xl is asked: %s", exists(m.savingFile()), asked())
	}
}

// TestUnpause: it is no error that Xen refuses to unpause a domain that runs.
func TestUnpause(t *testing.T) {
	const table = `case $1 in
		unpause) echo "libxl: error: libxl_domain.c:1:x: Domain 3:Refusing" >&2; exit 1;;
		list) echo "Name ID Mem VCPUs State Time(s)"; echo "orrery-unit-xen-7 3 128 1 STATE 1.0";;
	esac`
	for state, goesOn := range map[string]bool{"-b----": true, "r-----": true, "--p---": false} {
		_, m, _ := ground(t, strings.ReplaceAll(table, "STATE", state))
		if err := m.unpause(t.Context()); (err == nil) != goesOn {
			t.Errorf("%s: %v", state, err)
		}
	}
}

// TestStranger: in a node that boots a disk, no command can be run and no files are opened, and Xen
// asks it to shut down.
func TestStranger(t *testing.T) {
	e, m, asked := ground(t, "")
	r, err := m.Read()
	must(t, err)
	r.Disk = site.Disk{Firmware: site.BIOS, Guest: site.NoGuest}
	must(t, m.Write(&nodedir.Record{Node: r.Node}))
	e.Running = func(engine.Ref) bool { return true }
	if err := e.Runner(m.Ref).Run(t.Context(), host.Command{}); problem.ExitCode(err) != int(problem.Unable) ||
		!strings.Contains(err.Error(), "is unknown") {
		t.Errorf("it has an agent: %v", err)
	}
	if _, err := e.OpenRoot(m.Ref); problem.ExitCode(err) != int(problem.Unable) {
		t.Errorf("its root is opened: %v", err)
	}
	must(t, e.requestPowerOff(t.Context(), m))
	if asked() != "shutdown -F "+m.domain() {
		t.Errorf("xl is asked: %s", asked())
	}
}
