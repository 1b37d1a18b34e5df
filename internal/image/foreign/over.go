package foreign

import (
	"encoding/binary"
	"io"
)

// Under is the name by which an image knows what is under it, where QEMU goes by headers: a set of
// files that it is handed open (add-fd of qemu(1)), and nothing of the host's.
const Under = "/dev/fdset/10"

// SetUnder is the number of that set.
const SetUnder = 10

// Over writes a qcow2 image of so many bytes in which nothing is yet, over an image of a format,
// which it knows as Under.
func Over(to io.WriterAt, size int64, format string) error {
	if err := Blank(to, size); err != nil {
		return err
	}
	const extensions, name = 112, 1024 // the header has 112 bytes
	extension := binary.BigEndian.AppendUint32(nil, backingFormat)
	extension = append(binary.BigEndian.AppendUint32(extension, uint32(len(format))), format...)
	where := binary.BigEndian.AppendUint64(nil, name)
	where = binary.BigEndian.AppendUint32(where, uint32(len(Under)))
	for _, piece := range []struct {
		bytes []byte
		at    int64
	}{{extension, extensions}, {[]byte(Under), name}, {where, 8}} { // the header comes last
		if _, err := to.WriteAt(piece.bytes, piece.at); err != nil {
			return err
		}
	}
	return nil
}

// InspectOver looks at an image of so many bytes that QEMU is to go by: it has an image of that
// format under it, as Over has written it, and names nothing else.
func InspectOver(f io.ReaderAt, bytesIn int64, format string) (*Disk, error) {
	begins := make([]byte, len(magic))
	if _, err := f.ReadAt(begins, 0); err != nil || string(begins) != magic {
		return nil, refuse(again, "it is no qcow2 image")
	}
	return inspectQCow2(f, bytesIn, format)
}
