package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
)

// Read returns all entries of the journal at path and of its rotated files, the oldest first, with the
// states of the runs that have not ended. It also returns the numbers of the lines that cannot be read,
// such as one that a power cut has truncated. Lines are counted from the first one of the oldest file.
func Read(path string) (all []Entry, damaged []int, err error) {
	gone := map[string]bool{}
	all, damaged, err = readAll(path, gone)
	if err == nil && len(gone) > 0 {
		// A run may have ended after its file was read and before its lock was looked at: then its end is
		// there now, because the lock is released after the end is written.
		all, damaged, err = readAll(path, map[string]bool{})
	}
	setStates(all, gone)
	return all, damaged, err
}

// readAll reads the files of a journal, and adds the runs that no process writes any more to gone.
func readAll(path string, gone map[string]bool) (all []Entry, damaged []int, err error) {
	number := 0
	read := func(path string) error {
		some, bad, lines, err := readOne(path, gone)
		for _, n := range bad {
			damaged = append(damaged, number+n)
		}
		all, number = append(all, some...), number+lines
		return err
	}
	for n := maxRotated; n > 0; n-- {
		if err := read(rotatedPath(path, n)); err != nil {
			return all, damaged, err
		}
	}
	err = read(path)
	return all, damaged, err
}

// readOne reads one file, counts its lines, and adds the runs that no process writes any more to gone.
func readOne(path string, gone map[string]bool) (all []Entry, damaged []int, number int, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, 0, nil
	}
	if err != nil {
		return nil, nil, 0, err
	}
	defer f.Close()
	all, damaged, number, err = Decode(f)
	maps.Copy(gone, dead(f, all))
	return all, damaged, number, err
}

// maxEntries limits how many entries are read from one journal, or from another host's data. The files
// that are kept cannot contain as many.
var maxEntries = 500_000 // variable, so that tests can change it

// Decode reads the entries of a journal, counts its lines, and returns the numbers of those that
// cannot be read.
func Decode(from io.Reader) (all []Entry, damaged []int, number int, err error) {
	lines := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := readLine(lines)
		if err == io.EOF { //nolint:errorlint // it is never wrapped
			return all, damaged, number, nil
		}
		if err != nil {
			return all, damaged, number, err
		}
		number++
		if string(line) == "\n" {
			continue // terminateLastLine has ended the previous line while another process was writing it
		}
		if len(all)+len(damaged) == maxEntries {
			return all, damaged, number, errors.New("it has too many entries")
		}
		var e Entry
		if json.Unmarshal(line, &e) == nil && e.Kind != "" {
			e.Hosts = nil
			if e.Kind != "begin" || e.State != Running && e.State != Killed {
				e.State = ""
			}
			all = append(all, e)
		} else {
			damaged = append(damaged, number)
		}
	}
}

// Encode writes entries as the lines of a journal.
func Encode(to io.Writer, all []Entry) error {
	lines := json.NewEncoder(to)
	for _, e := range all {
		if err := lines.Encode(e); err != nil {
			return err
		}
	}
	return nil
}

// readLine reads a line. It returns nothing for a line longer than any entry, and never holds more than
// that in memory.
func readLine(from *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := from.ReadSlice('\n')
		long = long || len(line)+len(part) > maxEntryBytes
		if long {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == io.EOF && (len(line) > 0 || long): //nolint:errorlint // it is never wrapped
			return line, nil
		default:
			return line, err
		}
	}
}

// LastRuns returns the entries from the begin of the last runs on, or all entries if runs is 0. A
// run may have begun on several hosts.
func LastRuns(entries []Entry, runs int) []Entry {
	if runs <= 0 {
		return entries
	}
	from, begun := 0, map[string]bool{}
	for i := len(entries) - 1; i >= 0; i-- {
		if e := &entries[i]; e.Kind != "begin" {
			continue
		} else if begun[e.Run] = true; len(begun) > runs {
			break
		}
		from = i
	}
	if len(begun) < runs {
		return entries
	}
	return entries[from:]
}
