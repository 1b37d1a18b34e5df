package foreign

import (
	"encoding/binary"
	"io"
)

// BackingPath is the name of the backing file in an image whose header QEMU reads. It is a set of files
// that QEMU gets as open descriptors (add-fd of qemu(1)), not a file of the host.
const BackingPath = "/dev/fdset/10"

// BackingFDSet is the number of that set.
const BackingFDSet = 10

// CreateOverlay writes an empty qcow2 image of the given size. Its backing file is Under, which has the
// given format.
func CreateOverlay(to io.WriterAt, size int64, format string) error {
	if err := CreateEmpty(to, size); err != nil {
		return err
	}
	const extensions, name = 112, 1024 // the header has 112 bytes
	extension := binary.BigEndian.AppendUint32(nil, backingFormat)
	extension = append(binary.BigEndian.AppendUint32(extension, uint32(len(format))), format...)
	where := binary.BigEndian.AppendUint64(nil, name)
	where = binary.BigEndian.AppendUint32(where, uint32(len(BackingPath)))
	for _, piece := range []struct {
		bytes []byte
		at    int64
	}{{extension, extensions}, {[]byte(BackingPath), name}, {where, 8}} { // write the header last
		if _, err := to.WriteAt(piece.bytes, piece.at); err != nil {
			return err
		}
	}
	return nil
}

// InspectOverlay inspects an image of bytesIn bytes whose header QEMU will read. It must have a
// backing file of that format, as CreateOverlay has written it, and name no other file.
func InspectOverlay(f io.ReaderAt, bytesIn int64, format string) (*Disk, error) {
	begins := make([]byte, len(magic))
	if _, err := f.ReadAt(begins, 0); err != nil || string(begins) != magic {
		return nil, newInvalid(adviceRefetch, "it is not a qcow2 image")
	}
	return inspectQCow2(f, bytesIn, format)
}
