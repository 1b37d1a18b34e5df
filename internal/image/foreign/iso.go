package foreign

import (
	"encoding/binary"
	"maps"
	"slices"
)

// sector is the size of a block of ISO 9660.
const sector = 2048

// isoImage returns an ISO 9660 file system (ECMA-119) with a few files in one directory. Names are
// lower case and without a version, as all systems show them.
func isoImage(label string, files map[string][]byte) []byte {
	const (
		descriptor = 16 * sector // the volume descriptor; the next sector terminates the descriptors
		littleAt   = 18
		bigAt      = 19
		rootAt     = 20
	)
	next := uint32(rootAt + 1)
	root := slices.Concat(isoRecord("\x00", rootAt, sector, true), isoRecord("\x01", rootAt, sector, true))
	var content []byte
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := files[name]
		root = append(root, isoRecord(name, next, uint32(len(text)), false)...)
		content = append(content, text...)
		content = append(content, make([]byte, -len(text)&(sector-1))...)
		next += uint32((len(text) + sector - 1) / sector)
	}
	all := make([]byte, (rootAt+1)*sector, int(next)*sector)
	v := all[descriptor:]
	copy(v, "\x01CD001\x01")
	copy(v[8:], padded("LINUX", 32))
	copy(v[40:], padded(label, 32))
	both32(v[80:], next)
	both16(v[120:], 1)
	both16(v[124:], 1)
	both16(v[128:], sector)
	both32(v[132:], 10) // bytes of a path table
	binary.LittleEndian.PutUint32(v[140:], littleAt)
	binary.BigEndian.PutUint32(v[148:], bigAt)
	copy(v[156:], isoRecord("\x00", rootAt, sector, true))
	copy(v[190:], padded("", 623))
	for _, at := range []int{813, 830, 847, 864} { // unspecified dates
		copy(v[at:], "0000000000000000\x00")
	}
	v[881] = 1
	copy(all[descriptor+sector:], "\xffCD001\x01")
	copy(all[littleAt*sector:], "\x01\x00\x14\x00\x00\x00\x01\x00\x00\x00")
	copy(all[bigAt*sector:], "\x01\x00\x00\x00\x00\x14\x00\x01\x00\x00")
	copy(all[rootAt*sector:], root)
	return append(all, content...)
}

// isoRecord returns the directory entry of a file or of the directory itself.
func isoRecord(name string, at, size uint32, directory bool) []byte {
	r := make([]byte, (33+len(name)+1)/2*2)
	r[0] = byte(len(r))
	both32(r[2:], at)
	both32(r[10:], size)
	copy(r[18:], []byte{70, 1, 1, 0, 0, 0, 0}) // 1970
	if directory {
		r[25] = 2
	}
	both16(r[28:], 1)
	r[32] = byte(len(name))
	copy(r[33:], name)
	return r
}

func both16(to []byte, n uint16) {
	binary.LittleEndian.PutUint16(to, n)
	binary.BigEndian.PutUint16(to[2:], n)
}

func both32(to []byte, n uint32) {
	binary.LittleEndian.PutUint32(to, n)
	binary.BigEndian.PutUint32(to[4:], n)
}

func padded(text string, length int) string {
	for len(text) < length {
		text += " "
	}
	return text[:length]
}
