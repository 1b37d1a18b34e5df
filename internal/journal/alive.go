package journal

import (
	"os"
	"strconv"

	"orrery/internal/host"
)

// The states of a run without an end. They are determined when a journal is read, and not stored.
const (
	Running = "running"
	Killed  = "killed" // the process that wrote the run's entries is gone
)

// markAlive marks the byte of the journal that stands for a run. The kernel removes the mark when the journal
// is closed or its process is killed. So readers can tell whether a run without an end is still running, which
// a recorded process number could not: the helper on a remote host may outlive the run.
func (j *Journal) markAlive(run string) {
	if at, ok := aliveByte(run); ok {
		host.MarkByte(j.file, at)
	}
}

// aliveByte returns the position of the byte for a run. Runs are named by their start time in hexadecimal,
// which is far beyond the end of any journal.
func aliveByte(run string) (int64, bool) {
	at, err := strconv.ParseInt(run, 16, 64)
	return at, err == nil && at > 0
}

// dead returns the runs that have begun and not ended among the entries of a file, and that no process has
// open any more.
func dead(f *os.File, entries []Entry) map[string]bool {
	gone := map[string]bool{}
	for i := range entries {
		if e := &entries[i]; e.Kind == "begin" {
			gone[e.Run] = true
		} else if e.Kind == "end" {
			delete(gone, e.Run)
		}
	}
	for run := range gone {
		if at, ok := aliveByte(run); ok && host.ByteMarked(f, at) {
			delete(gone, run)
		}
	}
	return gone
}

// setStates sets the states of the runs that have begun and not ended.
func setStates(entries []Entry, dead map[string]bool) {
	ended := map[string]bool{}
	for i := range entries {
		if entries[i].Kind == "end" {
			ended[entries[i].Run] = true
		}
	}
	for i := range entries {
		e := &entries[i]
		switch {
		case e.Kind != "begin" || ended[e.Run]:
			e.State = ""
		case dead[e.Run]:
			e.State = Killed
		default:
			e.State = Running
		}
	}
}
