// Package foreign inspects foreign disk images before any other program opens them.
//
// It detects their format and verifies that they refer to no file of the host. A qcow2 image can
// name other files, such as a backing file or a data file. A program that trusts the header opens
// those as well. So no image is accepted that names one, and no program trusts a header: QEMU is
// told the format and gets all files as open descriptors. A Seed identifies a node to a guest that
// boots such an image.
package foreign

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// The accepted formats.
const (
	QCow2 = "qcow2"
	Raw   = "raw"
)

// A Disk is the format and size of an image.
type Disk struct {
	Format string
	Size   int64 // bytes that the guest sees
}

// An InvalidError is the error for an image that is not accepted, with a remedy.
type InvalidError struct{ What, Cure string }

func (r *InvalidError) Error() string { return r.What }

func newInvalid(cure, format string, args ...any) *InvalidError {
	return &InvalidError{fmt.Sprintf(format, args...), cure}
}

const (
	adviceConvert = "convert it: qemu-img convert -O qcow2 FILE disk.qcow2"
	adviceRefetch = "download it again, and compare its checksum"
)

// otherFormats are formats that an image may be in by mistake, by their first bytes.
var otherFormats = []struct{ magic, name, cure string }{
	{"KDMV", "a VMDK image", adviceConvert}, {"# Disk DescriptorFile", "a VMDK image", adviceConvert},
	{"vhdxfile", "a VHDX image", adviceConvert}, {"conectix", "a VHD image", adviceConvert},
	{"QED\x00", "a QED image", adviceConvert}, {"<<< ", "a VDI image", adviceConvert},
	{"LUKS\xba\xbe", "encrypted", "decrypt it first"},
	{"\x1f\x8b", "compressed by gzip", "unpack it: gunzip FILE"},
	{"\xfd7zXZ\x00", "compressed by xz", "unpack it: unxz FILE"},
	{"\x28\xb5\x2f\xfd", "compressed by zstd", "unpack it: unzstd FILE"},
	{"BZh", "compressed by bzip2", "unpack it: bunzip2 FILE"}, {"PK\x03\x04", "a ZIP archive", "unpack it"},
}

// magic is the beginning of a qcow2 image.
const magic = "QFI\xfb"

// maxSize limits the size of a disk as a guest sees it. It is larger than any real disk.
const maxSize = 1 << 46

// Inspect returns the format and size of an image of bytesIn bytes. The name must agree with the
// content: an image called .raw that has the header of another format was made to be mistaken for
// one.
func Inspect(name string, f io.ReaderAt, bytesIn int64) (*Disk, error) {
	head := make([]byte, 64)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	head = head[:n]
	for _, o := range otherFormats {
		if bytes.HasPrefix(head, []byte(o.magic)) {
			return nil, newInvalid(o.cure, "it is %s", o.name)
		}
	}
	qcow2 := bytes.HasPrefix(head, []byte(magic))
	switch {
	case qcow2 && strings.HasSuffix(name, ".raw"):
		return nil, newInvalid("rename it to .qcow2, if it is a qcow2 image", "its name ends in .raw, but it begins like a qcow2 image")
	case qcow2:
		return inspectQCow2(f, bytesIn, "")
	case strings.HasSuffix(name, ".qcow2"):
		return nil, newInvalid(adviceRefetch, "it is not a qcow2 image")
	case bytesIn < 512 || bytesIn%512 != 0:
		return nil, newInvalid(adviceRefetch, "it has %d bytes, which is not a multiple of the sector size", bytesIn)
	case bytesIn > maxSize:
		return nil, newInvalid("make it smaller", "it is larger than %d TiB", maxSize>>40)
	}
	return &Disk{Raw, bytesIn}, nil
}

// header is the big-endian header of a qcow2 image (docs/interop/qcow2.txt in QEMU).
type header struct {
	Magic            [4]byte
	Version          uint32
	BackingOffset    uint64
	BackingSize      uint32
	ClusterBits      uint32
	Size             uint64
	Crypt            uint32
	L1Size           uint32
	L1Offset         uint64
	RefcountOffset   uint64
	RefcountClusters uint32
	Snapshots        uint32
	SnapshotsOffset  uint64
	Incompatible     uint64 // from here on, fields of version 3
	Compatible       uint64
	Autoclear        uint64
	RefcountOrder    uint32
	Length           uint32
	Compression      uint8
	_                [7]byte
}

const (
	lengthV2 = 72
	lengthV3 = 104
)

// Incompatible features.
const (
	dirty = 1 << iota
	corrupt
	external
	compression
	extendedL2
)

// Extensions of a header.
const (
	endOfExtensions = 0
	backingFormat   = 0xE2792ACA
	dataFile        = 0x44415441
	encryption      = 0x0537BE77
)

// inspectQCow2 inspects a qcow2 image. Under is the format of the backing file that it must name,
// or "" if it must not name one.
func inspectQCow2(f io.ReaderAt, bytesIn int64, under string) (*Disk, error) {
	var h header
	raw := make([]byte, binary.Size(h))
	n, err := f.ReadAt(raw, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if n < lengthV2 {
		return nil, newInvalid(adviceRefetch, "its header is cut short")
	}
	if err := binary.Read(bytes.NewReader(raw), binary.BigEndian, &h); err != nil {
		return nil, err
	}
	switch h.Version {
	case 2:
		h.Incompatible, h.RefcountOrder, h.Length = 0, 4, lengthV2
	case 3:
		if n < lengthV3 {
			return nil, newInvalid(adviceRefetch, "its header is cut short")
		}
	default:
		return nil, newInvalid(adviceConvert, "it is a qcow2 image of version %d", h.Version)
	}
	if err := h.checkFeatures(); err != nil {
		return nil, err
	}
	if err := h.checkBacking(f, under); err != nil {
		return nil, err
	}
	if err := h.checkTables(bytesIn); err != nil {
		return nil, err
	}
	if err := h.checkExtensions(f, bytesIn, under); err != nil {
		return nil, err
	}
	return &Disk{QCow2, int64(h.Size)}, nil
}

// checkBacking returns a Refusal unless the image has the expected backing file, or none if none is
// expected.
func (h *header) checkBacking(f io.ReaderAt, under string) error {
	named := h.BackingOffset != 0 || h.BackingSize != 0
	switch {
	case !named && under == "":
		return nil
	case named && under != "" && h.BackingSize == uint32(len(BackingPath)) && h.BackingOffset < 1<<h.ClusterBits:
		name := make([]byte, len(BackingPath))
		if _, err := f.ReadAt(name, int64(h.BackingOffset)); err == nil && string(name) == BackingPath {
			return nil
		}
	case !named:
		return newInvalid(adviceRefetch, "it has lost its backing file")
	}
	return newInvalid("merge both files where the other one is: qemu-img convert -O qcow2 FILE disk.qcow2",
		"it names a backing file")
}

// checkFeatures returns a Refusal for an image whose data is in another file, or that should not be
// read.
func (h *header) checkFeatures() error {
	switch {
	case h.Incompatible&external != 0:
		return newInvalid("merge both files where the other one is: qemu-img convert -O qcow2 FILE disk.qcow2",
			"its data is in another file")
	case h.Crypt != 0:
		return newInvalid("decrypt it: qemu-img convert", "it is encrypted")
	case h.Incompatible&corrupt != 0:
		return newInvalid("repair it: qemu-img check -r all FILE", "it is marked as damaged")
	case h.Incompatible&dirty != 0:
		return newInvalid("repair it: qemu-img check -r all FILE", "it was not closed after it was last written")
	case h.Incompatible&^(compression|extendedL2) != 0:
		return newInvalid(adviceConvert, "it has unknown features (%#x)", h.Incompatible)
	}
	return nil
}

// checkTables returns a Refusal for an image whose tables contradict its header.
func (h *header) checkTables(bytesIn int64) error {
	damaged := newInvalid(adviceRefetch, "it is damaged: its tables are not where its header says")
	if h.ClusterBits < 9 || h.ClusterBits > 21 || h.RefcountOrder > 6 || h.Length < lengthV2 || h.Length%8 != 0 ||
		uint64(h.Length) > 1<<h.ClusterBits {
		return newInvalid(adviceRefetch, "it is damaged: its header has impossible values")
	}
	if h.Size > maxSize {
		return newInvalid("make it smaller", "it is larger than %d TiB", maxSize>>40)
	}
	cluster, in := uint64(1)<<h.ClusterBits, uint64(bytesIn)
	entry := uint64(8)
	if h.Incompatible&extendedL2 != 0 {
		entry = 16
	}
	covers := cluster / entry * cluster // bytes covered by an entry of the L1 table
	if uint64(h.L1Size) < (h.Size+covers-1)/covers {
		return damaged
	}
	for _, t := range []struct{ at, bytes uint64 }{
		{h.L1Offset, uint64(h.L1Size) * 8}, {h.RefcountOffset, uint64(h.RefcountClusters) * cluster},
	} {
		if t.bytes > 0 && (t.at == 0 || t.at%cluster != 0 || t.at > in || t.bytes > in-t.at) {
			return damaged
		}
	}
	if h.Snapshots > 0 && (h.SnapshotsOffset == 0 || h.SnapshotsOffset > in) {
		return damaged
	}
	return nil
}

// checkExtensions returns a Refusal for an image whose header extensions contradict its features.
func (h *header) checkExtensions(f io.ReaderAt, bytesIn int64, under string) error {
	at, end := int64(h.Length), min(int64(1)<<h.ClusterBits, bytesIn)
	if under != "" {
		end = min(end, int64(h.BackingOffset)) // the name follows the extensions
	}
	known := under == "" // whether the format of the backing file is known
	for at+8 <= end {
		var word [8]byte
		if _, err := f.ReadAt(word[:], at); err != nil {
			return err
		}
		kind, length := binary.BigEndian.Uint32(word[:4]), int64(binary.BigEndian.Uint32(word[4:]))
		switch kind {
		case endOfExtensions:
			at = end
			continue
		case dataFile:
			return newInvalid(adviceConvert, "its data is in another file")
		case backingFormat:
			if under == "" || !contains(f, at+8, length, under) {
				return newInvalid(adviceConvert, "it names a backing file")
			}
			known = true
		case encryption:
			return newInvalid("decrypt it: qemu-img convert", "it is encrypted")
		}
		if length > end-at-8 {
			return newInvalid(adviceRefetch, "it is damaged: its header has impossible values")
		}
		at += 8 + (length+7)/8*8
	}
	if !known {
		return newInvalid(adviceRefetch, "it does not name the format of its backing file")
	}
	return nil
}

// contains reports whether f contains word at an offset.
func contains(f io.ReaderAt, at, length int64, word string) bool {
	if length != int64(len(word)) {
		return false
	}
	text := make([]byte, length)
	_, err := f.ReadAt(text, at)
	return err == nil && string(text) == word
}
