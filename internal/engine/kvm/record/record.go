// Package record stores the end of a guest's serial console output. QEMU writes the output into a
// pipe. From there, a process of orrery-guest writes it to two files in turn: when one is full, the
// other is emptied and written next. The process ends with QEMU. The files stay until the machine's
// directory is removed.
package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/text/sanitize"
)

const (
	// MaxBytes limits the stored output, in bytes. At least the last half of that is always stored.
	MaxBytes = 1 << 20

	maxHalfBytes = MaxBytes / 2

	// headerBytes is the length of a half's header. The header is the number of the half, and the
	// half that was begun later has the larger number.
	headerBytes = 8
)

// Command is the argument that makes orrery-guest the recorder.
const Command = "record"

// A Record has the open files of a recorder process.
type Record struct {
	From   *os.File    // the end of the pipe from which the process reads
	To     *os.File    // the end for QEMU
	Halves [2]*os.File // the stored output
}

// Create opens the record in a directory, and creates it if it does not exist.
func Create(dir string) (r *Record, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := unix.Mkfifo(pipe(dir), 0o600); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, &os.PathError{Op: "mkfifo", Path: pipe(dir), Err: err}
	}
	r = &Record{}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	// The reading end is opened without waiting for a writer, because the writing end is opened
	// after it. Later it blocks for data.
	fd, err := unix.Open(pipe(dir), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: pipe(dir), Err: err}
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		return nil, errors.Join(os.NewSyscallError("fcntl", err), unix.Close(fd))
	}
	r.From = os.NewFile(uintptr(fd), pipe(dir))
	if r.To, err = Open(dir); err != nil {
		return nil, err
	}
	for i := range r.Halves {
		if r.Halves[i], err = os.OpenFile(half(dir, i), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Open opens the writing end of a record with a running recorder. Without one, it returns ENXIO or
// fs.ErrNotExist.
func Open(dir string) (*os.File, error) {
	fd, err := unix.Open(pipe(dir), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: pipe(dir), Err: err}
	}
	if err := unix.SetNonblock(fd, false); err != nil { // QEMU blocks until there is room
		return nil, errors.Join(os.NewSyscallError("fcntl", err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), pipe(dir)), nil
}

// Close closes all files but the end for QEMU.
func (r *Record) Close() {
	for _, f := range []*os.File{r.From, r.Halves[0], r.Halves[1]} {
		if f != nil {
			f.Close() //nolint:errcheck // nothing was written
		}
	}
}

func pipe(dir string) string { return filepath.Join(dir, "console.pipe") }

func half(dir string, i int) string { return filepath.Join(dir, "console."+strconv.Itoa(i)) }

// numberOf returns the number of a half, or 0 if it was never begun.
func numberOf(f io.ReaderAt) uint64 {
	var header [headerBytes]byte
	if _, err := f.ReadAt(header[:], 0); err != nil {
		return 0
	}
	return binary.BigEndian.Uint64(header[:])
}

// Run records the standard input in the first two files passed to this process, until QEMU has
// ended.
func Run() error {
	return rotate(os.Stdin, [2]*os.File{os.NewFile(3, "first half"), os.NewFile(4, "second half")})
}

// rotate writes its input to two halves in turn. It begins in the older half, so that the output
// stored by another process is not lost. Output for which there is no room, as on a full file
// system, is dropped, because the guest must not wait for it.
func rotate(from io.Reader, halves [2]*os.File) error {
	first, second := numberOf(halves[0]), numberOf(halves[1])
	number, at, used := max(first, second), 0, maxHalfBytes
	if first < second {
		at = 1
	}
	buffer := make([]byte, 4<<10)
	for {
		n, err := from.Read(buffer)
		if used+n > maxHalfBytes && begin(halves[1-at], number+1) == nil {
			number, at, used = number+1, 1-at, 0
		}
		if used+n <= maxHalfBytes {
			wrote, _ := halves[at].Write(buffer[:n])
			used += wrote
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// begin empties a half and writes its number.
func begin(half *os.File, number uint64) error {
	if err := half.Truncate(0); err != nil {
		return err
	}
	if _, err := half.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := half.Write(binary.BigEndian.AppendUint64(nil, number))
	return err
}

// Read returns the output stored in a directory, or fs.ErrNotExist.
func Read(dir string) (text []byte, err error) {
	const maxTries = 3 // a guest that prints much may change the halves during the read
	for range maxTries {
		var whole bool
		if text, whole, err = read(dir); whole || err != nil {
			break
		}
	}
	return text, err
}

// read reads both halves. It reports whole if the older half has not changed during the read.
func read(dir string) (text []byte, whole bool, err error) {
	var halves [2]*os.File
	var numbers [2]uint64
	var texts [2][]byte
	for i := range halves {
		if halves[i], err = os.Open(half(dir, i)); err != nil {
			return nil, false, err
		}
		defer halves[i].Close() //nolint:errcheck // it was only read
		numbers[i] = numberOf(halves[i])
		if texts[i], err = io.ReadAll(io.NewSectionReader(halves[i], headerBytes, maxHalfBytes)); err != nil {
			return nil, false, err
		}
	}
	older, newer := 0, 1
	if numbers[0] > numbers[1] {
		older, newer = 1, 0
	}
	info, err := halves[older].Stat()
	if err != nil {
		return nil, false, err
	}
	whole = numberOf(halves[older]) == numbers[older] && info.Size() == int64(len(texts[older]))+headerBytes ||
		info.Size() == 0
	return append(texts[older], texts[newer]...), whole, nil
}

// Save copies the output stored in a directory to a file of the node, if there is any.
func Save(dir, path string) {
	if text, err := Read(dir); err == nil {
		_ = os.WriteFile(path, text, 0o600) // ignore the error: the output is only shown to users
	}
}

// panicLine is how the line begins in which Linux says why it panics.
const panicLine = "Kernel panic"

// PanicCause returns the line in which a guest's kernel says why it panics, followed by the last lines
// of its output. The result is never empty.
func PanicCause(text []byte) string {
	last := sanitize.LastLines(text)
	if last == "" {
		last = "its console is empty"
	}
	at := bytes.LastIndex(text, []byte(panicLine))
	if at < 0 {
		return last
	}
	cause, _, _ := bytes.Cut(text[at:min(len(text), at+maxCauseBytes)], []byte("\n"))
	return sanitize.Line(strings.TrimSpace(string(cause))) + "\n" + last
}

// maxCauseBytes limits the length of the line that says why a kernel panics.
const maxCauseBytes = 200

// LastLines returns the last lines that a guest has printed, under a heading, or "" if there are
// none.
func LastLines(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	return "the last lines of its console:\n" + sanitize.LastLines(text)
}
