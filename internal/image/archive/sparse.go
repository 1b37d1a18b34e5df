package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// A sparse file is in an archive without its holes, as `tar -S` writes it. Go's archive/tar reads
// all formats of sparse files, but returns zeros for the holes. A file with a few bytes of data can
// then take hours. So this file parses the list of the data again, from the headers that
// archive/tar has just read and accepted, and reads the data directly behind them.
type sparse struct {
	from io.Reader // the rest of the data
	data []extent
	size int64
}

// An extent is a part of a file that is not a hole.
type extent struct{ at, length int64 }

var errSparse = errors.New("the data map of a sparse file is damaged")

// newSparse returns the sparse file of a header, or nil if the file has no holes. Headers has the
// raw headers of the file.
func newSparse(h *tar.Header, headers *recorder) (*sparse, error) {
	var numbers []int64
	var err error
	major, minor, inHeader := h.PAXRecords["GNU.sparse.major"], h.PAXRecords["GNU.sparse.minor"],
		h.PAXRecords["GNU.sparse.map"]
	switch {
	case h.Typeflag == tar.TypeGNUSparse:
		numbers, err = headers.listGNU()
	case major == "1" && minor == "0":
		numbers, err = headers.listPAX()
	case inHeader != "" && (major == "" && minor == "" || major == "0" && (minor == "0" || minor == "1")):
		numbers, err = parseDecimals(strings.Split(inHeader, ","))
	case major == "0" && (minor == "0" || minor == "1"): // only a hole
	default:
		return nil, nil
	}
	if err != nil || len(numbers)%2 != 0 {
		return nil, errSparse
	}
	s := &sparse{size: h.Size}
	end := int64(0)
	for pair := range slices.Chunk(numbers, 2) {
		x := extent{pair[0], pair[1]}
		if x.at < end || x.length < 0 || x.length > h.Size-x.at {
			return nil, errSparse
		}
		end = x.at + x.length
		s.data = append(s.data, x)
	}
	s.from = io.LimitReader(headers.from, s.bytes())
	return s, nil
}

// bytes returns the number of data bytes.
func (s *sparse) bytes() (sum int64) {
	for _, x := range s.data {
		sum += x.length
	}
	return sum
}

// blocks returns how many bytes the data occupies on a disk, on which holes consist of whole
// blocks.
func (s *sparse) blocks() (sum int64) {
	const unit = 4 << 10
	for _, x := range s.data {
		if x.length > 0 {
			sum += (x.at+x.length-1)/unit*unit + unit - x.at/unit*unit
		}
	}
	return sum
}

func (s *sparse) Read(p []byte) (int, error) { return s.from.Read(p) }

// fill writes the file. It is new, so the parts that are not written are holes.
func (s *sparse) fill(to *os.File) error {
	buffer := make([]byte, 64<<10)
	for _, x := range s.data {
		n, err := io.CopyBuffer(io.NewOffsetWriter(to, x.at), io.LimitReader(s.from, x.length), buffer)
		if err == nil && n < x.length {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
	}
	return to.Truncate(s.size)
}

// skip reads the rest of the data and the padding after it.
func (s *sparse) skip(from io.Reader) error {
	_, err := io.Copy(io.Discard, s.from)
	if err == nil {
		_, err = io.CopyN(io.Discard, from, -s.bytes()&(block-1))
	}
	return err
}

// block is the unit of tar archives.
const block = 512

// A recorder keeps the bytes that archive/tar reads as headers.
type recorder struct {
	from    io.Reader
	headers []byte
	on      bool
}

// maxHeaders limits what is kept: archive/tar accepts 1 MiB each for a long name, a long link, PAX
// records, and a list of data.
const maxHeaders = 8 << 20

func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if r.on && len(r.headers) <= maxHeaders {
		r.headers = append(r.headers, p[:n]...)
	}
	return n, err
}

// next reads the headers of the next entry and keeps them.
func (r *recorder) next(archive *tar.Reader) (*tar.Header, error) {
	r.headers, r.on = r.headers[:0], true
	defer func() { r.on = false }()
	return archive.Next()
}

// last returns the header of the entry itself and what follows it. Before that header are the
// padding of the previous entry, which is less than a block, and headers that extend this one.
func (r *recorder) last() (head, rest []byte, err error) {
	all := r.headers[len(r.headers)%block:]
	for len(r.headers) <= maxHeaders && len(all) >= block {
		head, all = all[:block], all[block:]
		switch head[156] {
		case tar.TypeXHeader, tar.TypeGNULongName, tar.TypeGNULongLink:
		default:
			return head, all, nil
		}
		size, err := parseNumber(head[124:136])
		if err != nil || size < 0 || size > int64(len(all)) {
			return nil, nil, errSparse
		}
		all = all[min(size+(-size&(block-1)), int64(len(all))):]
	}
	return nil, nil, errSparse
}

// listGNU returns the offsets and lengths of the data in GNU's format: four in the header, 21 in
// each block that follows.
func (r *recorder) listGNU() (numbers []int64, err error) {
	head, rest, err := r.last()
	if err != nil {
		return nil, err
	}
	list, more := head[386:482], head[482]
	for {
		for entry := range slices.Chunk(list, 24) {
			if entry[0] == 0 {
				break
			}
			at, err1 := parseNumber(entry[:12])
			length, err2 := parseNumber(entry[12:])
			if err1 != nil || err2 != nil {
				return nil, errSparse
			}
			numbers = append(numbers, at, length)
		}
		if more == 0 {
			return numbers, nil
		}
		if len(rest) < block {
			return nil, errSparse
		}
		list, more, rest = rest[:504], rest[504], rest[block:]
	}
}

// listPAX returns the offsets and lengths in version 1.0 of the POSIX format: lines before the
// data, the first of which has the number of extents.
func (r *recorder) listPAX() ([]int64, error) {
	_, rest, err := r.last()
	if err != nil {
		return nil, err
	}
	first, rest, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.ParseInt(string(first), 10, 32)
	if err != nil || n < 0 {
		return nil, errSparse
	}
	lines := strings.SplitN(string(rest), "\n", int(2*n)+1)
	if int64(len(lines)) != 2*n+1 {
		return nil, errSparse
	}
	return parseDecimals(lines[:2*n])
}

func parseDecimals(texts []string) (numbers []int64, err error) {
	for _, text := range texts {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// parseNumber parses a number in a header: octal or, if the first bit is set, binary.
func parseNumber(field []byte) (n int64, err error) {
	if field[0]&0x80 == 0 {
		text := strings.Trim(string(field), " \x00")
		if text == "" {
			return 0, nil
		}
		return strconv.ParseInt(text, 8, 64)
	}
	if field[0] != 0x80 || slices.ContainsFunc(field[1:len(field)-8], func(b byte) bool { return b != 0 }) ||
		field[len(field)-8] > 0x7f {
		return 0, errSparse // negative, or larger than any file
	}
	for _, b := range field[len(field)-8:] {
		n = n<<8 | int64(b)
	}
	return n, nil
}
