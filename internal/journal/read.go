package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
)

// Read gives all entries of the journal at path and of those that were set aside, the oldest first, and the numbers of the lines that cannot be read, such as one
// that a power cut left half written: they hide none of the others. Lines are counted from the first that there is.
func Read(path string) (all []Entry, damaged []int, err error) {
	number := 0
	read := func(path string) error {
		some, bad, lines, err := readOne(path)
		for _, n := range bad {
			damaged = append(damaged, number+n)
		}
		all, number = append(all, some...), number+lines
		return err
	}
	for n := kept; n > 0; n-- {
		if err := read(former(path, n)); err != nil {
			return all, damaged, err
		}
	}
	err = read(path)
	return all, damaged, err
}

// readOne reads one file, and counts its lines.
func readOne(path string) (all []Entry, damaged []int, number int, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, 0, nil
	}
	if err != nil {
		return nil, nil, 0, err
	}
	defer f.Close()
	lines := bufio.NewReaderSize(f, 64<<10)
	for {
		line, err := next(lines)
		if err == io.EOF { //nolint:errorlint // it is never wrapped
			return all, damaged, number, nil
		}
		if err != nil {
			return all, damaged, number, err
		}
		number++
		if string(line) == "\n" {
			continue // mend found the line before it half written, by another who was just writing it
		}
		var e Entry
		if json.Unmarshal(line, &e) == nil && e.Kind != "" {
			all = append(all, e)
		} else {
			damaged = append(damaged, number)
		}
	}
}

// next reads a line. Of one that is longer than any entry nothing is given, and no more than that is held in memory.
func next(from *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := from.ReadSlice('\n')
		long = long || len(line)+len(part) > longest
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

// LastRuns gives the entries from where the last so many runs begin.
func LastRuns(entries []Entry, runs int) []Entry {
	for i := len(entries) - 1; i >= 0; i-- {
		if entries[i].Kind == "begin" {
			if runs--; runs <= 0 {
				return entries[i:]
			}
		}
	}
	return entries
}
